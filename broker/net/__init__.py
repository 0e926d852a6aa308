"""Connections before their sessions, and the event loop that all connections share."""
