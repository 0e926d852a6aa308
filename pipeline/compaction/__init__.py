"""Compact topics that are too large for one process on Spark: keep the latest message of each key."""
