"""The rules of Tidemill in plain Python: it imports nothing but the standard library."""
