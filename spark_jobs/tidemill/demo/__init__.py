"""The demonstration: a log is written, batches run, one is killed, and the result is recomputed from the log."""
