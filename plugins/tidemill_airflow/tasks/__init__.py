"""The tasks: operators, how they execute batches, and how they report them."""
