"""Delta tables behind one protocol, with two writers."""
