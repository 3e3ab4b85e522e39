"""Doctests of modules that need Inspect are left out where it is not installed."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("inspect_ai") else ["calls.py", "debate.py", "probe.py"]
