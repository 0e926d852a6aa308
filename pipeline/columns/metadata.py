"""Columns that every topic has, named as in Pulsar's own Spark connector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pulsarium.client import Message, MessageId
from pulsarium.pipeline.columns.names import (
    EVENT_TIME,
    INDEX,
    KEY,
    MESSAGE_ID,
    PROPERTIES,
    PUBLISH_TIME,
    TOPIC,
    UNDECODABLE,
)
from pulsarium.pipeline.columns.ragged import of_numbers
from pulsarium.proto.numbers import LONG_MAX

# tags of the fields of MessageIdData, all of which are varints
_LEDGER, _ENTRY, _PARTITION, _BATCH_INDEX, _BATCH_SIZE = b"\x08", b"\x10", b"\x18", b"\x20", b"\x30"


# Protobuf would take four times as long.
def serialized(messages: Sequence[Message[Any]]) -> list[bytes]:
    """Return the serialized id of each message, as `MessageId.serialize` does."""
    made: list[bytes] = []
    last: tuple[int, ...] = ()
    head = tail = b""
    for each in messages:
        id_ = each.message_id()
        if id_.first_chunk is not None or id_.ledger_id < 0 or id_.entry_id < 0 or id_.batch_index < -1:
            made.append(id_.serialize())
            continue
        entry = id_.ledger_id, id_.entry_id, id_.partition, id_.batch_size
        if entry != last:
            last = entry
            head, tail = parts_of_id(id_, id_.batch_size)
        index = id_.batch_index
        made.append(head + tail if index == -1 else head + _BATCH_INDEX + _varint(index) + tail)
    return made


def parts_of_ids(ids: Iterable[bytes]) -> list[dict[str, int]]:
    """Return serialized ids as values of `MESSAGE_ID_PARTS`."""
    found = map(MessageId.deserialize, ids)
    return [
        {"ledgerId": id_.ledger_id, "entryId": id_.entry_id, "partition": id_.partition, "batchIndex": id_.batch_index}
        for id_ in found
    ]


def parts_of_id(id_: MessageId, batch_size: int) -> tuple[bytes, bytes]:
    """Return the serialized ids of an entry's messages without the batch index, which stands between both parts."""
    head = _LEDGER + _varint(id_.ledger_id) + _ENTRY + _varint(id_.entry_id)
    if id_.partition != -1:
        head += _PARTITION + _varint(id_.partition)
    return head, _BATCH_SIZE + _varint(batch_size)


def batch_index_of_id(index: int) -> bytes:
    """Return a batch index as a part of a serialized id."""
    return _BATCH_INDEX + _varint(index)


def _varint(value: int) -> bytes:
    if 0 <= value < 128:
        return _SHORT[value]
    value %= 2**64  # protobuf extends negative numbers to 64 bits
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


_SHORT = [bytes([each]) for each in range(128)]


Messages: TypeAlias = Sequence[Message[Any]]

_MICROSECONDS = pa.timestamp("us", tz="UTC")
_MOST_MILLISECONDS = LONG_MAX // 1000


def moments(milliseconds: Any) -> pa.Array:
    """Return timestamps, of a list or an array of numpy. 0, and a time out of a timestamp's range, is null."""
    found = np.asarray(milliseconds, np.uint64)
    is_time = (found > 0) & (found <= _MOST_MILLISECONDS)
    return of_numbers(np.where(is_time, found, 0).astype(np.int64) * 1000, _MICROSECONDS, ~is_time)


EXTRACT: Mapping[str, Callable[[Messages], pa.Array | list[Any]]] = {
    KEY: lambda messages: [each.key_bytes() for each in messages],
    TOPIC: lambda messages: [each.topic_name() for each in messages],
    MESSAGE_ID: serialized,
    PUBLISH_TIME: lambda messages: moments([each.publish_timestamp() for each in messages]),
    EVENT_TIME: lambda messages: moments([each.event_timestamp() for each in messages]),
    PROPERTIES: lambda messages: [each.properties() for each in messages],
    INDEX: lambda messages: [each.index() for each in messages],
    UNDECODABLE: lambda messages: [None] * len(messages),  # `BatchBuilder` has the others
}
"""Functions that return a column or its values, by the column's name."""
