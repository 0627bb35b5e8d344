"""Text of Spark SQL: names and literals, and what an expression reads and calls, without an SQL engine."""
