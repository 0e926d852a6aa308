"""A broker inside a test: in a thread of its own, with fixtures and assertions."""
