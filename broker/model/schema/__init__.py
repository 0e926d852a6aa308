"""Schemas of topics: versions, validation and compatibility."""
