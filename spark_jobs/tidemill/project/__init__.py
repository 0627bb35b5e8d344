"""A user's project: its folder, settings, pipeline files, and the names and generations of its pipelines."""
