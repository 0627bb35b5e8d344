"""What pages show, as plain values."""
