"""Executes batches, from plan to commit, one after the other."""
