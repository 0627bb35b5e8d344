"""Spark itself: sessions, servers, workers, jars, and what its errors mean."""
