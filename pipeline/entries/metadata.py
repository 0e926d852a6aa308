"""Columns that every topic has, from entries."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from contextlib import suppress

import numpy as np
import pyarrow as pa

from pulsarium.pipeline.columns.metadata import batch_index_of_id, moments, parts_of_id
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
from pulsarium.pipeline.columns.ragged import of_bytes, of_numbers, repeated
from pulsarium.pipeline.entries.arrays import binary, text
from pulsarium.pipeline.entries.fields import Unusual, once
from pulsarium.pipeline.entries.rows import EntryRows


def _keys(rows: EntryRows) -> pa.Array:
    found = rows.field("partition_key")
    if found is None:
        return pa.nulls(len(rows), pa.binary())
    once(found)
    made = binary(rows.data, found.first, found.stop, found.rows, len(rows))
    encoded = rows.numbers("partition_key_b64_encoded")
    if not encoded.any():
        return made
    keys = zip(made.to_pylist(), encoded.tolist(), strict=True)
    return pa.array([_decoded(key) if is_encoded else key for key, is_encoded in keys], pa.binary())


def _decoded(key: bytes | None) -> bytes | None:
    if key is not None:
        with suppress(ValueError):
            return base64.b64decode(key, validate=True)
    return key


def _topics(rows: EntryRows) -> pa.Array:
    return repeated(rows.parts[0].entry.topic_name(), len(rows))


def _ids(rows: EntryRows) -> pa.Array:
    made: list[bytes] = []
    lengths = []
    for part in rows.parts:
        if not part.rows:
            continue
        head, tail = parts_of_id(part.entry.message_id(), part.size)
        if not part.size:
            made.append(head + tail)
            lengths.append(np.array([len(made[-1])], np.int64))
            continue
        indexes = _INDEXES.up_to(part.last)
        made.append(head + (tail + head).join(indexes.fields[part.first : part.last]) + tail)
        lengths.append(indexes.lengths[part.first : part.last] + len(head) + len(tail))
    return of_bytes(b"".join(made), np.concatenate(lengths))


class _Indexes:
    """Serialized batch indexes, from 0 on."""

    def __init__(self) -> None:
        self.fields: list[bytes] = []
        self.lengths = np.empty(0, np.int64)

    def up_to(self, count: int) -> _Indexes:
        """Return the indexes, of which there are at least `count`."""
        if len(self.fields) < count:
            self.fields += [batch_index_of_id(index) for index in range(len(self.fields), count)]
            self.lengths = np.array([len(each) for each in self.fields], np.int64)
        return self


_INDEXES = _Indexes()


def _publish_times(rows: EntryRows) -> pa.Array:
    times = np.array([part.entry.publish_timestamp() for part in rows.parts], np.uint64)
    return moments(np.repeat(times, rows.counts))


def _event_times(rows: EntryRows) -> pa.Array:
    if rows.field("event_time") is None:
        return pa.nulls(len(rows), pa.timestamp("us", tz="UTC"))
    return moments(rows.numbers("event_time").view(np.uint64))


def _properties(rows: EntryRows) -> pa.Array:
    found = rows.field("properties")
    offsets = np.zeros(len(rows) + 1, np.int32)
    if found is None or rows.pairs is None:
        empty = pa.nulls(0, pa.string())
        return pa.MapArray.from_arrays(of_numbers(offsets, pa.int32()), empty, empty)
    np.cumsum(np.bincount(found.rows, minlength=len(rows)), out=offsets[1:])
    keys, values = (text(binary(rows.data, each.first, each.stop)) for each in rows.pairs)
    names = keys.dictionary_encode()
    if len(np.unique(found.rows * len(names.dictionary) + names.indices.to_numpy())) != len(names):
        raise Unusual("a property that a message has twice")  # the last one counts
    return pa.MapArray.from_arrays(of_numbers(offsets, pa.int32()), keys, values)


def _message_indexes(rows: EntryRows) -> pa.Array:
    indexes = [part.index_of_first for part in rows.parts]
    if all(index is None for index in indexes):
        return pa.nulls(len(rows), pa.int64())
    firsts = np.repeat([0 if index is None else index for index in indexes], rows.counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(rows.counts) - rows.counts, rows.counts)
    is_null = np.repeat([index is None for index in indexes], rows.counts)
    return of_numbers(firsts + within, pa.int64(), is_null)


METADATA: Mapping[str, Callable[[EntryRows], pa.Array]] = {
    KEY: _keys,
    TOPIC: _topics,
    MESSAGE_ID: _ids,
    PUBLISH_TIME: _publish_times,
    EVENT_TIME: _event_times,
    PROPERTIES: _properties,
    INDEX: _message_indexes,
    UNDECODABLE: lambda rows: pa.nulls(len(rows), pa.binary()),
}
"""Functions that return a column, by the column's name. They raise `Unusual` for what only single messages show."""
