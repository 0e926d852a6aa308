"""Compact topics on Spark, off the broker's core: keep the latest message of each key."""
