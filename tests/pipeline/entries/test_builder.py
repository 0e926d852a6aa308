from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pulsarium.client import AvroSchema, Message, MessageId, Schema
from pulsarium.client.bulk import messages_of
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.entries import builder
from pulsarium.pipeline.entries.builder import EntryBuilder
from pulsarium.pipeline.entries.rows import TakenEntry, take_apart
from pulsarium.proto.batch import pack
from pulsarium.proto.entry import build
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.pipeline.columns.messages import TOPIC, record

SCHEMA: AvroSchema[dict[str, Any]] = AvroSchema(record(("id", "long")))
BAD = b""


def taken(number: int, values: Sequence[bytes]) -> TakenEntry:
    """Return an entry with a batch of these values."""
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, num_messages_in_batch=len(values))
    stored = build(metadata, pack((pb.SingleMessageMetadata(), each) for each in values))
    return take_apart(Message(TOPIC, MessageId(1, number), metadata, pb.SingleMessageMetadata(), stored))


def by_message(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of each entry whose messages are built one after another."""
    found: list[int] = []

    def watched(entry: Message[bytes], schema: Schema[Any]) -> list[Message[Any]]:
        found.append(entry.message_id().entry_id)
        return messages_of(entry, schema)

    monkeypatch.setattr(builder, "messages_of", watched)
    return found


def test_a_value_that_does_not_fit_leaves_the_other_entries_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [SCHEMA.encode({"id": number}) for number in range(5 * builder._GROUP)]
    values[2 * builder._GROUP + 7] = BAD
    entries = [taken(at, values[at * builder._GROUP : (at + 1) * builder._GROUP]) for at in range(5)]
    columns = Columns.of(SCHEMA.info).with_undecodable()
    slow = by_message(monkeypatch)
    rows = EntryBuilder(columns, columns.schema).batch(entries).to_pylist()
    assert slow == [2]
    assert [row["id"] for row in rows] == [None if value is BAD else at for at, value in enumerate(values)]
    assert [row["__undecodable"] for row in rows] == [BAD if value is BAD else None for value in values]


def test_small_entries_are_built_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "_GROUP", 3)
    good = SCHEMA.encode({"id": 1})
    entries = [taken(at, [BAD if at == 4 else good]) for at in range(8)]
    columns = Columns.of(SCHEMA.info).with_undecodable()
    slow = by_message(monkeypatch)
    rows = EntryBuilder(columns, columns.schema).batch(entries).to_pylist()
    assert slow == [3, 4, 5]
    assert [row["id"] for row in rows] == [1, 1, 1, 1, None, 1, 1, 1]
