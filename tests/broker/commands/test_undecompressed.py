"""GET_LAST_MESSAGE_ID, which leaves the last compacted entry compressed wherever it can (PIP-429)."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

from pulsarium.proto import compression
from pulsarium.proto.entry import build, parse_metadata, payload_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.compacted import Retained, compacted
from tests.broker.model.compaction.topics import compact, keyed_batch
from tests.broker.wire import Bed, Type, Wire

BATCH: list[tuple[str | None, bytes]] = [("a", b"1"), ("a", b"2"), ("b", b"3"), ("c", b"")]


@pytest.fixture
def decompressed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the format of each payload that is decompressed."""
    names: list[str] = []

    def noting(name: str, method: Callable[[bytes, int], bytes]) -> Callable[[bytes, int], bytes]:
        def decompress(data: bytes, size: int) -> bytes:
            names.append(name)
            return method(data, size)

        return decompress

    methods = {kind: (name, noting(name, how), most) for kind, (name, how, most) in compression._METHODS.items()}
    monkeypatch.setattr(compression, "_METHODS", MappingProxyType(methods))
    return names


async def asking(bed: Bed, version: int) -> Wire:
    wire = await bed.connect(version)
    await wire.subscribe(name=f"s{version}", read_compacted=True, initialPosition=1)
    return wire


async def last_index(wire: Wire) -> int | None:
    """Return the batch index of the last message, or None if the broker sent the whole entry."""
    await wire.write(wire.numbered(Type.GET_LAST_MESSAGE_ID, consumer_id=0))
    command, buffer = await wire.next()
    found = command.getLastMessageIdResponse.last_message_id
    assert found.HasField("batch_index") is not bool(buffer), command
    return None if buffer else found.batch_index


@pytest.mark.req("S429-02", "S429-16", "S429-20")
@pytest.mark.parametrize("kind", [pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY])
async def test_the_last_compacted_entry_stays_compressed(
    bed: Bed, wire: Wire, decompressed: list[str], kind: Any
) -> None:
    await wire.producer()
    await wire.publish(keyed_batch(*BATCH, compression=kind), num_messages=4)
    topic = bed.topic()
    await compact(topic)
    assert decompressed  # compaction had to decompress
    decompressed.clear()
    new, old = await asking(bed, 22), await asking(bed, 21)
    assert [await last_index(new), await last_index(old)] == [None, 2]
    assert decompressed == []
    # The entry as an older engine left it, without field 31.
    position, entry = topic.compaction.compacted.last_entry() or pytest.fail("nothing is left")
    metadata = parse_metadata(entry)
    del metadata.compacted_batch_indexes[:]
    compacted(topic, Retained(position, {position: build(metadata, payload_of(entry))}))
    assert await last_index(new) is None
    assert decompressed == []
    assert await last_index(old) == 2
    assert len(decompressed) == 1
