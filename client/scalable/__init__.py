"""Scalable topics (PIP-460): topics whose segments are split and merged while producers and consumers stay open."""
