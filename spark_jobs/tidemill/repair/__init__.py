"""Going back: backfills, repairs, rewinds and decisions about blocked batches, as batches of a pipeline."""
