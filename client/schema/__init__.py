"""Schemas: how values of the application become bytes and back, and what the broker is told of it."""
