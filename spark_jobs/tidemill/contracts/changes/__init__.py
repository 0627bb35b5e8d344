"""What changed between two versions of a contract, and what it breaks."""
