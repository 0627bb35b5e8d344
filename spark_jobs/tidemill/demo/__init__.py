"""The demonstration: writes a log, runs batches, kills one of them, and recomputes the result from the log."""
