"""Contracts from and to other formats."""
