"""Broker entry metadata, which the broker puts in front of entries."""

from __future__ import annotations

import pytest

from pulsarium.broker.model.ledger.interceptors import INDEX_PROPERTY, kept_index


@pytest.mark.parametrize(
    ("text", "index"),
    [("0", 0), ("41", 41), ("", -1), ("-7", -1), ("x", -1), ("9" * 18, 10**18 - 1), ("9" * 30, -1), ("9" * 5000, -1)],
)
def test_the_stored_index_is_read_and_other_texts_are_ignored(text: str, index: int) -> None:
    """Users may set a property of this name, but no value of it may keep a topic from being loaded or written to."""
    assert kept_index({INDEX_PROPERTY: text}) == index
