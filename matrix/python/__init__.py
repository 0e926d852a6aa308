"""Scenario programs of the Python clients."""
