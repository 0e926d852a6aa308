"""Entries that claim to be larger than they are, or that decompress to very many bytes.

Compaction keeps such entries whole, REST reports the fault, and no part of the broker allocates the bytes that an entry
claims. The tests of our client are in tests/client/hostile/test_claims.py.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from struct import Struct

import pytest

from pulsarium.broker.lab.expectations import Produced
from pulsarium.proto import batch, last_entry
from pulsarium.proto.batch import MOST_MESSAGES
from pulsarium.proto.compaction import open_entry
from pulsarium.proto.compression import compress
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.errors import BatchError
from pulsarium.proto.framing import FrameDecoder
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.compaction.topics import compact, compacted_entries
from tests.broker.web.admin.rest import TOPICS, rest_of
from tests.broker.wire import TOPIC, Bed, Type, Wire, batch_of, frame_of, plain
from tests.foreign.deadline import eventually
from tests.hostile.claims import frugal
from tests.hostile.process import MB, serving

KINDS = (pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY)
LIES = (0, 1, 10_000, 20 * MB, 2**31 - 1, 2**32 - 1)
U32 = Struct(">I")

kinds = pytest.mark.parametrize("kind", KINDS, ids=pb.CompressionType.Name)


def keyed(*messages: tuple[str, bytes]) -> bytes:
    """Return the payload of a batch with these keys and values."""
    return batch.pack([(pb.SingleMessageMetadata(partition_key=key, payload_size=0), value) for key, value in messages])


def liar(kind: pb.CompressionType, claim: int) -> bytes:
    """Return a batch of two messages that claims to have `claim` bytes after decompression."""
    payload = compress(kind, keyed(("a", b"1" * 300), ("b", b"2" * 300)))
    return plain(payload, num_messages_in_batch=2, compression=kind, uncompressed_size=claim)


def bomb(kind: pb.CompressionType, size: int) -> bytes:
    """Return a batch of compressed zeros with its true uncompressed size."""
    return plain(compress(kind, bytes(size)), num_messages_in_batch=2, compression=kind, uncompressed_size=size)


def empty_messages(count: int, claim: int | None = None) -> bytes:
    """Return a batch of `count` empty messages that claims to have `claim` messages."""
    single = pb.SingleMessageMetadata(payload_size=0).SerializeToString()
    payload = (U32.pack(len(single)) + single) * count
    return plain(
        compress(pb.ZSTD, payload),
        num_messages_in_batch=count if claim is None else claim,
        compression=pb.ZSTD,
        uncompressed_size=len(payload),
    )


@pytest.mark.req("B-32")
@kinds
async def test_compaction_passes_over_lies(kind: pb.CompressionType, bed: Bed, wire: Wire) -> None:
    """Compaction keeps entries whole that it cannot read, and compacts the entries behind them."""
    lies = [liar(kind, claim) for claim in LIES]
    await wire.producer()
    with frugal(30 * MB):
        await wire.publish(
            plain(b"old", partition_key="k"), *lies, batch_of(b"x"), plain(b"new", partition_key="k"), num_messages=2
        )
        await compact(bed.topic())
    left = [entry for _, entry in compacted_entries(bed.topic())]
    assert left == [*lies, plain(b"new", partition_key="k")]


@kinds
async def test_compaction_takes_one_bomb_at_a_time(kind: pb.CompressionType, bed: Bed, wire: Wire) -> None:
    """Compaction decompresses an entry to at most 128 MiB, and frees these bytes before it reads the next entry."""
    await wire.producer()
    with frugal(2 * 20 * MB + 15 * MB):
        await wire.publish(*[bomb(kind, 20 * MB)] * 3, plain(b"v", partition_key="k"))
        await compact(bed.topic())
    assert len(compacted_entries(bed.topic())) == 4


@pytest.mark.parametrize("count", [MOST_MESSAGES + 1, 2**20 + 1])
def test_a_batch_of_more_messages_than_anybody_sends_stays_whole(count: int) -> None:
    entry = empty_messages(count)
    assert len(entry) < 2_000
    with frugal(10 * MB):
        opened = open_entry(entry)
        assert opened is not None
        assert opened.messages is None
        assert opened.rewritten(()) == entry


def test_the_largest_batch_is_taken_apart() -> None:
    opened = open_entry(empty_messages(MOST_MESSAGES))
    assert opened is not None
    assert opened.messages is not None
    assert len(opened.messages) == MOST_MESSAGES


async def test_a_thread_unpacks_and_rewrites_a_large_batch_of_a_compaction(
    bed: Bed, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of the event loop must not take as long as 60,000 messages do."""
    threads: list[int] = []

    def noted(payload: bytes, count: int) -> list[tuple[pb.SingleMessageMetadata, bytes]]:
        threads.append(threading.get_ident())
        return unpack(payload, count)

    unpack = batch.unpack
    await wire.producer()
    small, large = (keyed(*[(str(each % 5), b"v") for each in range(count)]) for count in (10, batch.MOST_AT_ONCE + 1))
    await wire.publish(plain(small, num_messages_in_batch=10), num_messages=10)
    await wire.publish(plain(large, num_messages_in_batch=batch.MOST_AT_ONCE + 1), num_messages=batch.MOST_AT_ONCE + 1)
    monkeypatch.setattr(batch, "unpack", noted)
    await compact(bed.topic())
    assert [each == threading.get_ident() for each in threads] == [True, False, False]  # read, read and rewritten
    ((_, left),) = compacted_entries(bed.topic())
    assert len(parse_metadata(left).compacted_batch_indexes) == 5


def test_its_last_message_is_found_without_keeping_the_others() -> None:
    """The last compacted entry (PIP-429) has to be taken apart when nothing else gives its last batch index."""
    parts = last_entry.take_apart(empty_messages(30_000))
    with frugal(2 * MB):
        assert last_entry.last_batch_index(parts.metadata, parts.payload) == 29_999


def test_a_batch_of_more_messages_than_the_reader_takes_is_not_taken_apart() -> None:
    payload = keyed(*[("k", b"v")] * 101)
    assert len(batch.unpack(payload, 101, 101)) == 101
    with pytest.raises(BatchError, match="101 messages in a batch, of which at most 100 are taken apart"):
        next(batch.messages_of(payload, 101, 100))
    with pytest.raises(BatchError, match=f"{MOST_MESSAGES + 1} messages"):
        batch.unpack(payload, MOST_MESSAGES + 1)


@kinds
@pytest.mark.parametrize("claim", LIES)
async def test_rest_says_what_is_wrong(kind: pb.CompressionType, claim: int, bed: Bed, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe()
    (position,) = await wire.publish(liar(kind, claim))
    rest = rest_of(bed)
    with frugal(30 * MB):
        for url in (f"ledger/{position.ledger_id}/entry/{position.entry_id}", "subscription/sub/position/1"):
            answer = await rest.call("GET", f"{TOPICS}/t/{url}")
            assert answer.status == 400, answer


@pytest.mark.parametrize("encrypted", [False, True])
async def test_an_entry_that_claims_two_billion_messages_is_counted_and_not_listed(
    encrypted: bool, bed: Bed, wire: Wire
) -> None:
    keys = [pb.EncryptionKeys(key="k", value=b"v")] if encrypted else []
    await wire.producer()
    await wire.publish(plain(b"value", num_messages_in_batch=2**31 - 1, encryption_keys=keys))
    with frugal(10 * MB):
        problem = Produced(bed.broker.cluster, TOPIC, 1).problem()
    assert problem is not None
    assert f"has {2**31 - 1} messages, not 1: b'value', " in problem
    assert f"and {2**31 - 11} more" in problem


def test_the_last_message_of_a_batch_that_compaction_kept_whole_is_known_without_the_batch() -> None:
    for entry in (empty_messages(2**20), bomb(pb.ZLIB, 100 * MB), empty_messages(batch.MOST_AT_ONCE + 1)):
        parts = last_entry.take_apart(entry)
        with frugal(1 * MB):
            found = last_entry.last_batch_index(parts.metadata, parts.payload)
        assert found == parts.metadata.num_messages_in_batch - 1


# Tests of a broker in a process of its own.


def awaited(client: socket.socket, decoder: FrameDecoder, type: int, count: int = 1) -> None:
    """Wait for so many commands of a type."""
    while count:
        data = client.recv(1 << 16)
        assert data
        for head, _ in decoder.feed(data):
            command = pb.BaseCommand.FromString(head)
            assert command.type not in (Type.ERROR, Type.SEND_ERROR), command
            count -= command.type == type


def bombs() -> Iterator[bytes]:
    for kind in KINDS:
        yield from (liar(kind, claim) for claim in LIES)
        yield bomb(kind, 50 * MB)
    yield bomb(pb.ZLIB, 300 * MB)
    yield bomb(pb.ZSTD, 300 * MB)
    yield empty_messages(MOST_MESSAGES)
    yield empty_messages(2**20 + 1)
    yield empty_messages(10, 2**31 - 1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks into /proc, which is Linux's")
@pytest.mark.timeout(300)
def test_the_memory_of_a_broker_that_compacts_bombs(tmp_path: Path) -> None:
    entries = [*bombs(), plain(b"v", partition_key="k")]
    assert max(map(len, entries)) < 5 * MB
    with serving(tmp_path) as served, socket.create_connection(served.address, timeout=30) as client:
        decoder = FrameDecoder()
        client.sendall(frame_of(Type.CONNECT, client_version="bomber", protocol_version=21))
        client.sendall(frame_of(Type.PRODUCER, topic=TOPIC, producer_id=0, request_id=1))
        awaited(client, decoder, Type.PRODUCER_SUCCESS)
        for number, entry in enumerate(entries):
            client.sendall(frame_of(Type.SEND, entry, producer_id=0, sequence_id=number))
        awaited(client, decoder, Type.SEND_RECEIPT, len(entries))
        before = served.memory
        served.forget_peak()
        http = HTTPConnection(*served.web_address, timeout=60)
        url = "/admin/v2/persistent/public/default/t/compaction"

        def asked(method: str) -> bytes:
            http.request(method, url)
            return http.getresponse().read()

        asked("PUT")
        slowest = 0.0

        def over() -> str:
            nonlocal slowest
            start = time.perf_counter()
            client.sendall(frame_of(Type.PING))
            awaited(client, decoder, Type.PONG)
            slowest = max(slowest, time.perf_counter() - start)
            status = json.loads(asked("GET"))["status"]
            return status if status != "RUNNING" else ""

        assert eventually(over, what="the compaction ends", seconds=200) == "SUCCESS"
        print(f"at most {(served.peak - before) / MB:.0f} MiB more, then {(served.memory - before) / MB:.0f};", end=" ")
        print(f"the slowest PING took {slowest * 1000:.0f} ms")
        assert served.peak - before < 300 * MB
        assert served.memory - before < 150 * MB
        http.close()
