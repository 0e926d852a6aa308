"""Managed ledgers: the append-only entries of a topic, in runs called ledgers."""
