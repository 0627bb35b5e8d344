"""What keeps a pipeline small for years."""
