"""What the DAGs of a pipeline are: their tasks, forms, names and documents."""
