"""Run debates and probes against any model with Inspect, and read its logs.

`pools` and `puzzles` give questions, `prompts` the wording, `debate` and `probe` are Inspect tasks, `logs`
turns their logs into answers and probe records, `quality` and `estimate` say how good and how dear a run is.
"""
