"""The commit protocol: the events of a ledger, what may follow what, and what they amount to."""
