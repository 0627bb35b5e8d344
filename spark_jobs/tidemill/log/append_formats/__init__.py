"""Turns input files into records: lines, JSON lines, CSV and Parquet, in chunks of bounded size."""
