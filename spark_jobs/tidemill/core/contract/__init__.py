"""Data contracts as values: fields and types, row rules, why records are rejected, what an audit found."""
