"""The ledger: what was planned and what is committed."""
