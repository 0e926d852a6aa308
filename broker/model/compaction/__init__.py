"""Compaction: the latest message of each key, for readers that ask for nothing else."""
