"""Pulsarium's own client, under trio."""
