"""What a batch may read, decided before any work starts, and where a pipeline stands between batches."""
