"""Authenticate clients, and authorize what their roles may do."""
