"""Tidemill: exactly-once stream processing in micro-batches."""
