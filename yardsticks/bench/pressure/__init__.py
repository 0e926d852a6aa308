"""Measure the cost of one client's load, or of one piece of work, for all others on the same broker."""
