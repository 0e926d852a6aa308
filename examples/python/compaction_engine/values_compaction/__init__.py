"""Compaction that keeps keys and values as JSON: `engine` for the broker, `client` for who reads it."""
