"""Message ids as bytes, many at a time: protobuf takes four times as long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pulsarium.client import Message

# Tags of MessageIdData's fields, all varints.
_LEDGER, _ENTRY, _PARTITION, _BATCH_INDEX, _BATCH_SIZE = b"\x08", b"\x10", b"\x18", b"\x20", b"\x30"


def serialized(messages: Sequence[Message[Any]]) -> list[bytes]:
    """What `MessageId.serialize` gives, of each."""
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
            head = _LEDGER + _varint(id_.ledger_id) + _ENTRY + _varint(id_.entry_id)
            if id_.partition != -1:
                head += _PARTITION + _varint(id_.partition)
            tail = _BATCH_SIZE + _varint(id_.batch_size)
        index = id_.batch_index
        made.append(head + tail if index == -1 else head + _BATCH_INDEX + _varint(index) + tail)
    return made


def _varint(value: int) -> bytes:
    if 0 <= value < 128:
        return _SHORT[value]
    value %= 2**64  # of negative ones, which protobuf extends to 64 bits
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


_SHORT = [bytes([each]) for each in range(128)]
