"""Programs that measure how cost grows with topics, connections, consumers and backlog."""
