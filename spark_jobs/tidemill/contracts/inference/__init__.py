"""A first contract, from a sample of records or rows."""
