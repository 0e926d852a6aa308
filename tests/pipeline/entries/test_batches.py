from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.pipeline.entries.batches import spans
from pulsarium.pipeline.entries.fields import PAD, Unusual, last_values, parse, tags_of
from pulsarium.proto.batch import pack, unpack
from pulsarium.proto.errors import BatchError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

TAGS = tags_of(pb.SingleMessageMetadata)


def in_bulk(payload: bytes, count: int) -> list[tuple[int, int, bytes]]:
    """Return the sequence id, the event time and the value of each message."""
    found = spans(payload, count)
    data = np.frombuffer(payload + bytes(1 + PAD), np.uint8)
    fields = parse(data, found[:, 0], found[:, 1])
    sizes = last_values(fields.get(TAGS["payload_size"]), count, -1)
    if (sizes != found[:, 2] - found[:, 1]).any():
        raise Unusual("a message with two sizes")
    ids, times = (last_values(fields.get(TAGS[name]), count, 0).tolist() for name in ("sequence_id", "event_time"))
    values = [payload[first:stop] for _, first, stop in found.tolist()]
    return list(zip(ids, times, values, strict=True))


def one_by_one(payload: bytes, count: int) -> list[tuple[int, int, bytes]]:
    return [(single.sequence_id, single.event_time, value) for single, value in unpack(payload, count)]


def packed(sizes: list[int], keys: list[str], first: int) -> bytes:
    return pack(
        (
            pb.SingleMessageMetadata(
                sequence_id=first + number, partition_key=keys[number % len(keys)], event_time=number
            ),
            b"v" * size,
        )
        for number, size in enumerate(sizes)
    )


SIZES = st.one_of(
    st.lists(st.integers(0, 300), min_size=1, max_size=60), st.integers(1, 300).map(lambda count: [count] * count)
)
KEYS = st.lists(st.text(max_size=5), min_size=1, max_size=2)


@given(sizes=SIZES, keys=KEYS, first=st.integers(0, 2**40))
def test_messages_are_where_the_parser_finds_them(sizes: list[int], keys: list[str], first: int) -> None:
    payload = packed(sizes, keys, first)
    assert in_bulk(payload, len(sizes)) == one_by_one(payload, len(sizes))


@given(
    sizes=SIZES,
    keys=KEYS,
    damage=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=3),
    cut=st.integers(0, 9),
)
@settings(max_examples=300)
def test_a_damaged_batch_is_read_as_the_parser_reads_it_or_is_unusual(
    sizes: list[int], keys: list[str], damage: list[tuple[int, int]], cut: int
) -> None:
    changed = bytearray(packed(sizes, keys, 120))
    for at, value in damage:
        changed[at % len(changed)] = value
    payload = bytes(changed[: len(changed) - cut])
    try:
        found = in_bulk(payload, len(sizes))
    except Unusual:
        return
    try:
        assert found == one_by_one(payload, len(sizes))
    except BatchError as error:
        raise AssertionError("the parser refuses the batch") from error
