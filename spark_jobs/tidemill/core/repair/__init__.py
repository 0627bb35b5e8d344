"""Batches that go back: which part of the past they take, and what becomes of state and side outputs."""
