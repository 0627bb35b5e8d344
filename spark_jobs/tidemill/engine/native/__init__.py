"""Statements that run in the driver, on rows that are there already."""
