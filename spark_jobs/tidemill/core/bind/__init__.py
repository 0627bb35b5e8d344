"""Declared pipelines joined with their contracts, and what their numbers mean."""
