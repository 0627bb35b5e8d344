"""Findings about files in the forms that systems of CI read."""
