"""A user's project: its folder, settings and pipeline files, and the names and generations of its pipelines."""
