"""Keeps a pipeline small for years."""
