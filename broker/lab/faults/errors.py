"""What is wrong with a rule, or with waiting for it."""

from __future__ import annotations


class FaultError(ValueError):
    """A rule that makes no sense; the text says what is allowed."""


class FaultRemoved(Exception):
    """A rule was removed while somebody waited for it."""
