"""Logs: where records come from."""
