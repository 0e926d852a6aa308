"""Ledgers, cursors, subscriptions and topics, without sockets and frames."""
