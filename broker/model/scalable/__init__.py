"""Scalable topics (PIP-460): layouts of segments, the controller of their subscriptions, and auto scale."""
