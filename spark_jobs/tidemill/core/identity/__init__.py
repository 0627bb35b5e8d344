"""Declarations, contracts and semantics written down: when two of them are the same."""
