"""Kill the broker with kill -9 under load, many times on one data directory.

Afterwards everything that the broker confirmed is stored, and stored once.
"""
