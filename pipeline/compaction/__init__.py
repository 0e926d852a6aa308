"""Compaction on Spark: the latest message of each key of topics that are too large for one process."""
