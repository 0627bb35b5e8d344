"""Data contracts: loading, linting, compiling, auditing."""
