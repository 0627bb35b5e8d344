"""The ledger: the record of planned and committed batches."""
