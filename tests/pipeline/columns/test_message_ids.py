"""Serialize many message ids as `MessageId.serialize` does."""

from hypothesis import given
from hypothesis import strategies as st

from pulsarium.client import MessageId
from pulsarium.pipeline.columns.metadata import serialized
from tests.pipeline.columns.messages import message

numbers = st.integers(0, 300) | st.integers(-1, 2**63 - 1)
small = st.integers(-1, 200) | st.integers(-1, 2**31 - 1)
sizes = st.integers(0, 2**20)


@st.composite
def ids(draw: st.DrawFn) -> MessageId:
    first = MessageId(draw(numbers), draw(numbers)) if draw(st.integers(0, 5)) == 0 else None
    return MessageId(draw(numbers), draw(numbers), draw(small), draw(small), draw(sizes), first)


@given(st.lists(ids(), max_size=4))
def test_ids_are_serialized_as_the_client_does(found: list[MessageId]) -> None:
    # Adjacent ids of one entry, because these share a part that is computed only once.
    found = [other for each in found for other in (each, MessageId(each.ledger_id, each.entry_id, each.partition, 5))]
    assert serialized([message(b"", id=each) for each in found]) == [each.serialize() for each in found]
