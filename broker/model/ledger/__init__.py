"""Managed ledgers: the append-only entries of a topic, in a sequence of ledgers."""
