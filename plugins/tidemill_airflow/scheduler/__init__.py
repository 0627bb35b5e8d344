"""What runs in the scheduler: pools, priorities, and its listener."""
