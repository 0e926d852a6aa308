"""What a store can fail with."""

from __future__ import annotations


class StorageError(Exception):
    """The store could not do what was asked: disk full, I/O error, damaged or foreign file, directory in use."""
