"""Windows that a batch publishes, and its writes where readers look."""
