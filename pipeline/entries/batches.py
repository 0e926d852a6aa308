"""Find the messages in the payload of a batch, without parsing them."""

from __future__ import annotations

import numpy as np

from pulsarium.pipeline.entries.fields import Bytes, Ints, Unusual
from pulsarium.proto.generated import PulsarApi_pb2 as pb

_SIZE_TAG = pb.SingleMessageMetadata.DESCRIPTOR.fields_by_name["payload_size"].number << 3
_HEAD = 4  # bytes of the size in front of each message's metadata
_SHORT = 16  # messages alike for which the comparison of whole runs pays


def spans(payload: bytes, count: int, begin: int = 0) -> Ints:
    """Return where the metadata, the value and the rest of each message of a batch begin, in three columns.

    The batch is the rest of `payload` from `begin` on. Raise `Unusual` when the payload is damaged or strange.
    """
    try:
        return _spans(payload, count, begin)
    except IndexError:
        raise Unusual("the batch ends inside a message") from None


def _spans(payload: bytes, count: int, at: int) -> Ints:
    data = np.frombuffer(payload, np.uint8)
    parts: list[Ints] = []
    left, patience = count, 0
    while left:
        walked: list[int] = []
        begin = at
        for _ in range(min(left, max(1, patience))):
            begin = at
            start = at + _HEAD
            value = start + int.from_bytes(payload[at:start], "big")
            at = value + _payload_size(payload, start, value)
            walked += (start, value, at)
        parts.append(np.array(walked, np.int64).reshape(-1, 3))
        left -= len(walked) // 3
        if at > len(payload):
            raise Unusual("a message beyond its batch")
        run = _run(data, payload, begin, at, left)
        if run:
            steps = np.arange(1, run + 1, dtype=np.int64)[:, None] * (at - begin)
            parts.append(parts[-1][-1] + steps)
            at += run * (at - begin)
            left -= run
        patience = 0 if run >= _SHORT else 2 * patience + _SHORT
    return np.concatenate(parts) if parts else np.empty((0, 3), np.int64)


def _run(data: Bytes, payload: bytes, begin: int, stop: int, left: int) -> int:
    """Return how many of the next messages have the frame of the one from `begin` to `stop`."""
    size = stop - begin
    most = min(left, (len(payload) - stop) // size)
    if most < _SHORT or payload[begin : begin + _HEAD + 2] != payload[stop : stop + _HEAD + 2]:
        return 0
    frame = _frame(payload, begin)
    rows = data[stop : stop + most * size].reshape(most, size)
    differ = np.flatnonzero((rows[:, frame] != data[begin:stop][frame]).any(axis=1))
    return int(differ[0]) if differ.size else most


def _frame(payload: bytes, begin: int) -> list[int]:
    """Return the offsets of the bytes that say where the value of a message begins and ends."""
    start = begin + _HEAD
    found = list(range(_HEAD))
    for at, behind, skip in _fields(payload, start, start + int.from_bytes(payload[begin:start], "big")):
        found += range(at - begin, behind - begin)
        if skip < 0:
            break
    return found


def _payload_size(payload: bytes, at: int, stop: int) -> int:
    if payload[at] == _SIZE_TAG:  # without properties and key, the first field
        low = payload[at + 1]
        if low < 128:
            return low
        high = payload[at + 2]
        if high < 128:
            return low & 127 | high << 7
    for begin, _, skip in _fields(payload, at, stop):
        if skip < 0:
            return _varint(payload, begin + 1)[0]
    raise Unusual("a message without payload_size")


def _fields(payload: bytes, at: int, stop: int) -> list[tuple[int, int, int]]:
    """Return where each field up to payload_size begins, where its tag and length end, and the bytes to skip.

    payload_size has -1 bytes to skip.
    """
    found = []
    while at < stop:
        tag, begin = payload[at], at
        if tag & 7 not in (0, 2):
            raise Unusual(f"the tag {tag}")
        number, at = _varint(payload, at + 1)
        skip = number if tag & 7 else 0
        found.append((begin, at, -1 if tag == _SIZE_TAG else skip))
        if tag == _SIZE_TAG:
            break
        at += skip
    return found


def _varint(payload: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = payload[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7
        if shift > 28:
            raise Unusual("a length of more than four bytes")
