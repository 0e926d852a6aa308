"""Helpers for the tests of claims."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frugal(most: int) -> Iterator[None]:
    """Check that the block never has as many as `most` bytes allocated at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
