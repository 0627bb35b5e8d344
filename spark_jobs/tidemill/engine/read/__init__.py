"""From offsets of a log to typed rows."""
