"""Which batches read which offsets, found without reading the whole ledger."""
