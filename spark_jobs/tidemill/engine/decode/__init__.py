"""Decoders: from the bytes of a record to a typed row."""
