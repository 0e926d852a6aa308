"""Rates that are kept to: how fast messages come in and go out, and consumers come (B-42)."""
