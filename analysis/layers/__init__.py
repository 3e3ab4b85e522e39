"""Measures of open-ended debate in layers, for debates that have no gold answer to be scored against."""
