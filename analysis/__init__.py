"""Transition ledger, signed replay and pre-debate screen for multi-agent debate.

Data flow one way: `coder` (text to answers) - `traces` (files to answers) - `ledger` (answers to debates to rows) -
`screen`, `localize`, `replay` (rows to tables) - `figures` and `book` (tables to pages).
"""
