"""Tries a contract on records or rows, without a batch."""
