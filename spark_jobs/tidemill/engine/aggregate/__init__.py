"""From typed rows to partial aggregates, and windows merged from them, as SQL of Spark."""
