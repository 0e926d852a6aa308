"""Schemas of topics."""
