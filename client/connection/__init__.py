"""Connections to brokers: the protocol, the routing of commands, lookups and reconnection."""
