"""Answers questions about a pipeline: where it stands, where a number comes from, whether its tables match the log."""
