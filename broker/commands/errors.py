"""What a handler raises when Pulsar would close the connection."""

from __future__ import annotations


class CloseConnection(Exception):
    """A client did what Pulsar closes the connection for; the text goes to the log."""
