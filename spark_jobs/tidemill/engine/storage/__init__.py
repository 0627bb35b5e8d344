"""Rows between Spark jobs and Delta tables: who writes them, where the tables lie, what they must hold."""
