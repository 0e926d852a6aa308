"""Entries, and the messages in them: packed, compressed, encrypted, and back."""
