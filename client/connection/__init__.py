"""Connections to brokers: the protocol, who on a connection gets what, finding a topic's broker and staying with it."""
