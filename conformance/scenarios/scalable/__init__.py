"""Scenarios of scalable topics (PIP-460 and its followers)."""
