"""Delta tables: one protocol, one writer without a JVM for small rows, one on Spark for large ones."""
