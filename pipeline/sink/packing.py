"""Pack the messages of a record batch into batches of Pulsar, by columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from pulsarium.client.bulk import PackedBatch
from pulsarium.pipeline.columns.ragged import Numbers, RowBytes, constant, joined, numbers, size_of, varints
from pulsarium.pipeline.columns.writing import OutgoingRows
from pulsarium.proto.generated.PulsarApi_pb2 import SingleMessageMetadata

# Tags of SingleMessageMetadata, in their order: (number of the field << 3) | type.
_KEY = b"\x12"
_PAYLOAD_SIZE = b"\x18"
_EVENT_TIME = b"\x28"
_IS_BASE64 = b"\x30"
_SEQUENCE_ID = b"\x40"
_NULL_VALUE = b"\x48"
_TRUE = b"\x01"


def packed(messages: OutgoingRows, sequence_ids: Numbers) -> pa.Array:
    """Return each message as a batch has it: `[u32 size][SingleMessageMetadata][content]`, of type large_binary."""
    rows = len(messages)
    contents = messages.contents
    parts: list[pa.Array | RowBytes] = []
    if messages.properties is not None:
        parts.append(_properties(messages.properties))
    if messages.keys is not None:
        has_key = ~np.asarray(messages.keys.is_null().to_numpy(zero_copy_only=False))
        parts += [constant(_KEY, rows).only(has_key), varints(size_of(messages.keys)).only(has_key)]
        parts.append(messages.keys.fill_null(b""))
    parts += [constant(_PAYLOAD_SIZE, rows), varints(size_of(contents.data))]
    if messages.event_times is not None:
        has_time = messages.event_times > 0
        parts += [constant(_EVENT_TIME, rows).only(has_time), varints(messages.event_times).only(has_time)]
    if messages.is_base64.any():
        parts.append(constant(_IS_BASE64 + _TRUE, rows).only(messages.is_base64))
    parts += [constant(_SEQUENCE_ID, rows), varints(sequence_ids)]
    if contents.is_null.any():
        parts.append(constant(_NULL_VALUE + _TRUE, rows).only(contents.is_null))
    size = sum(each.sizes() if isinstance(each, RowBytes) else size_of(each) for each in parts)
    return joined([numbers(np.asarray(size), ">u4"), *parts, contents.data])


def _properties(all_properties: list[dict[str, str] | None]) -> pa.Array:
    """Return the properties of each message, encoded one by one."""
    made = []
    for properties in all_properties:
        metadata = SingleMessageMetadata()
        for key, value in (properties or {}).items():
            metadata.properties.add(key=key, value=value)
        made.append(metadata.SerializePartialToString())
    return pa.array(made, pa.large_binary())


def cuts(sizes: Numbers, most_messages: int, most_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield the first message of each batch, and the first one behind it.

    A batch has at most `most_messages` messages, and either one message or at most `most_bytes` bytes.
    """
    ends = np.cumsum(sizes)
    start = before = 0
    while start < len(ends):
        fitting = int(np.searchsorted(ends, before + most_bytes, side="right"))
        stop = max(start + 1, min(fitting, start + most_messages))
        yield start, stop
        start, before = stop, int(ends[stop - 1])


class Packed:
    """The messages of one partition, packed."""

    def __init__(self, messages: OutgoingRows, payloads: pa.Array, members: Numbers, sequence_ids: Numbers) -> None:
        """Take the messages `members` of a record batch. `payloads` is that of `packed`."""
        self._messages = messages
        self._members = members
        self._sequence_ids = sequence_ids[members]
        chosen = payloads if len(members) == len(payloads) else payloads.take(pa.array(members))
        _, offsets, self._data = chosen.buffers()
        self._offsets = np.frombuffer(offsets, np.int64, len(chosen) + 1)
        self._sizes: Numbers = size_of(messages.contents.data)[members]
        self.packed_sizes: Numbers = np.diff(self._offsets)

    def batch(self, start: int, stop: int) -> PackedBatch:
        """Return the batch of the messages from `start` to the one before `stop`."""
        begin, end = int(self._offsets[start]), int(self._offsets[stop])
        first = SingleMessageMetadata(payload_size=0)
        key = None if self._messages.keys is None else self._messages.keys[int(self._members[start])].as_py()
        if key is not None:
            first.partition_key = key.decode()
            if self._messages.is_base64[self._members[start]]:
                first.partition_key_b64_encoded = True
        return PackedBatch(
            self._data[begin:end].to_pybytes(),
            stop - start,
            int(self._sizes[start:stop].sum()),
            int(self._sequence_ids[start]),
            int(self._sequence_ids[stop - 1]),
            first,
        )
