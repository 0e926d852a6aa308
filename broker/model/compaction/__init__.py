"""Compaction: keep the latest message of each key, for readers of the compacted topic."""
