"""Encode messages to entries, and decode entries to messages."""
