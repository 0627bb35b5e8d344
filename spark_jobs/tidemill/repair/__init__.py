"""Changes to the past, as batches of a pipeline: backfills, repairs, rewinds, and decisions about blocked batches."""
