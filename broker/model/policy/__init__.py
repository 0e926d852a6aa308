"""What holds for a topic: its own policies over its namespace's over broker.conf."""
