"""Dispatchers: each decides which consumer gets an entry, and when."""
