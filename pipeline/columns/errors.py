"""What can be wrong between topics and DataFrames."""

from __future__ import annotations


class BadColumns(ValueError):
    """Columns that do not fit the topic's schema, or that nothing can be made of."""


class BadMessage(ValueError):
    """A message that is not what its topic's schema says; names its topic and id."""


class BadRow(ValueError):
    """A row that the topic's schema has no place for: a null, a symbol that the enum has not; names the column."""
