"""Static pages about the contracts of a project."""
