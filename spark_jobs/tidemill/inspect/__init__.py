"""Looking at a pipeline: where it stands, where a number comes from, and whether tables are what the log gives."""
