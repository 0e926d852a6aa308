"""The policies of a topic: its own over its namespace's over broker.conf."""
