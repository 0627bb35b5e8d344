"""What runs on Spark and on Delta tables."""
