"""Measuring programs of how cost grows: with topics, connections, consumers and backlog."""
