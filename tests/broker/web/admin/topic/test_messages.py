"""Single messages over REST, by their place in a subscription or topic, or by their id."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from pulsarium.broker.config import PIP, PULSAR_4_2, Config, Profile
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.storage.interface import ReadDone, StorageError
from pulsarium.broker.web.admin.topic import messages
from pulsarium.proto.compression import compress, decompress
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.held import HeldStorage
from tests.broker.web.admin.rest import TOPICS, Answer, Rest, rest_of
from tests.broker.wire import Bed, Earliest, Shared, Wire, batch_of, plain, serving

T = f"{TOPICS}/t"
PEEK = f"{T}/subscription/s/position"
PROFILES = pytest.mark.parametrize("profile", [PIP, PULSAR_4_2], ids=lambda profile: profile.name)


def where(answer: Answer) -> str:
    assert answer.status == 200, answer
    return answer.headers["X-Pulsar-Message-ID"]


async def published(wire: Wire, count: int) -> list[Position]:
    await wire.producer()
    return await wire.publish(*[plain(b"%d" % number) for number in range(count)])


# peek


async def test_the_nth_message_of_a_subscription(rest: Rest, wire: Wire) -> None:
    positions = await published(wire, 5)
    await wire.subscribe(name="s", type=Shared, initialPosition=Earliest)
    await wire.ack(positions[0])
    await wire.ack(positions[2])
    for number, position, body in ((1, positions[1], b"1"), (2, positions[3], b"3"), (3, positions[4], b"4")):
        answer = await rest.call("GET", f"{PEEK}/{number}")
        assert (where(answer), answer.body) == (str(position), body)
    for number in (4, 5, 2**31 - 1):
        assert await rest.refused("GET", f"{PEEK}/{number}") == (404, "Message not found")


@PROFILES
async def test_peeking_makes_a_subscription_that_is_not_there(profile: Profile) -> None:
    async with serving(profile=profile) as made:
        rest, wire = rest_of(made), await made.connect()
        await published(wire, 2)
        assert (await rest.call("GET", f"{PEEK}/1")).body == b"0"
        assert await rest.refused("GET", f"{T}/subscription/other/position/3") == (404, "Message not found")
        assert await rest.get(f"{T}/subscriptions") == ["s", "other"]
        for name in ("pulsar.replx", "pulsar.repl.other", "__compaction"):
            assert (await rest.refused("GET", f"{T}/subscription/{name}/position/1"))[0] == 404


@PROFILES
async def test_metadata_that_no_header_can_hold_is_answered_500_with_the_reason(profile: Profile) -> None:
    async with serving(profile=profile) as made:
        rest, wire = rest_of(made), await made.connect()
        await wire.producer()
        await wire.publish(plain(b"x", properties=[{"key": "k", "value": "v" * 20_000}]))
        for url in (f"{PEEK}/1", f"{T}/examinemessage?initialPosition=earliest&messagePosition=1"):
            answer = await rest.call("GET", url)
            assert (answer.status, answer.json["message"]) == (500, "Response Header Fields Too Large")


async def test_a_thread_decompresses_a_payload_above_a_megabyte(
    rest: Rest, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of the event loop must not take as long as the decompression of 128 MiB."""
    threads: list[int] = []

    def noted(kind: pb.CompressionType, data: bytes, size: int) -> bytes:
        threads.append(threading.get_ident())
        return decompress(kind, data, size)

    monkeypatch.setattr(messages, "decompress", noted)
    await wire.producer()
    for size in (1 << 20, (1 << 20) + 1):
        await wire.publish(plain(compress(pb.ZLIB, bytes(size)), compression=pb.ZLIB, uncompressed_size=size))
        answer = await rest.call("GET", f"{T}/examinemessage?messagePosition=1")
        assert len(answer.body) == size
    assert [each == threading.get_ident() for each in threads] == [True, False]


# by id


async def test_an_entry_is_read_by_its_id(rest: Rest, wire: Wire) -> None:
    ((ledger, _), *_) = await published(wire, 2)
    for entry in (0, 1):
        answer = await rest.call("GET", f"{T}/ledger/{ledger}/entry/{entry}")
        assert (where(answer), answer.body) == (f"{ledger}:{entry}", b"%d" % entry)
        assert answer.headers["content-type"] == "application/json"


@PROFILES
async def test_an_entry_that_is_not_there_is_not_found(bed: Bed, profile: Profile) -> None:
    async with serving(profile=profile) as made:
        rest, wire = rest_of(made), await made.connect()
        ((ledger, _), *_) = await published(wire, 2)
        absent = (404, "Message id not found")
        assert await rest.refused("GET", f"{T}/ledger/999999/entry/0") == absent
        beyond = f"LastConfirmedEntry is {ledger}:1 when reading entry 2"
        for entry, shown in ((2, beyond), (-1, "Incorrect parameter input error code: -14")):
            found = await rest.refused("GET", f"{T}/ledger/{ledger}/entry/{entry}")
            assert found == absent if profile is PIP else (found[0] == 500 and shown in found[1])
        answer = await rest.call("GET", f"{T}/ledger/x/entry/0")
        assert (answer.status, answer.json["message"]) == (404, "Not Found")


async def test_an_entry_that_is_not_committed(bed: Bed) -> None:
    store = HeldStorage()
    async with serving(storage=store) as made:
        rest, wire = rest_of(made), await made.connect()
        ((ledger, _),) = await published(wire, 1)
        store.holding = True
        await wire.write(wire.sends(plain(b"x")))
        await wire.alive()
        assert await rest.refused("GET", f"{T}/ledger/{ledger}/entry/1") == (404, "Message id not found")
        store.release()
        assert (await rest.call("GET", f"{T}/ledger/{ledger}/entry/1")).body == b"x"


# examine


async def test_the_nth_message_from_either_end(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    assert await rest.refused("GET", f"{T}/examinemessage") == (
        412,
        "Could not examine messages due to the total message is zero",
    )
    await wire.publish(*[plain(b"%d" % number) for number in range(4)])
    for query, found in (
        ("", 3),
        ("?messagePosition=", 3),
        ("?initialPosition=earliest", 0),
        ("?initialPosition=earliest&messagePosition=2", 1),
        ("?initialPosition=earliest&messagePosition=9999", 3),
        ("?initialPosition=earliest&messagePosition=-3", 0),
        ("?initialPosition=latest&messagePosition=0", 3),
        ("?initialPosition=latest&messagePosition=2", 2),
        ("?initialPosition=latest&messagePosition=4", 0),
        ("?initialPosition=EARLIEST", 3),
        ("?initialPosition=wrong&messagePosition=1", 3),
    ):
        assert (await rest.call("GET", f"{T}/examinemessage{query}")).body == b"%d" % found, query
    answer = await rest.call("GET", f"{T}/examinemessage?messagePosition=x")
    assert (answer.status, answer.json["message"]) == (404, "Not Found")


# all three


class Broken(HeldStorage):
    """A store that cannot read entries."""

    def read(self, ledger_id: int, first: int, last: int, done: ReadDone) -> None:
        if self.holding_reads:
            super().read(ledger_id, first, last, done)
        else:
            done(StorageError("the disk is broken"))


@asynccontextmanager
async def asked(rest: Rest, url: str) -> AsyncIterator[list[Answer]]:
    """Make a call in the background. Its answer is in the list when the block ends."""
    answers: list[Answer] = []

    async def ask() -> None:
        answers.append(await rest.call("GET", url))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        yield answers


@pytest.mark.parametrize("what", ["subscription/s/position/3", "ledger/{ledger}/entry/2", "examinemessage"])
async def test_an_entry_comes_from_disk_while_others_are_served(bed: Bed, what: str) -> None:
    store = HeldStorage()
    async with serving(Config(managedLedgerCacheSizeMB=0), storage=store) as made:
        rest, wire = rest_of(made), await made.connect()
        ((ledger, _), *_) = await published(wire, 3)
        await wire.subscribe(name="s", initialPosition=Earliest)
        made.broker.cluster.cache.trim()
        store.holding_reads = True
        async with asked(rest, f"{T}/{what.format(ledger=ledger)}") as answers:
            await wire.alive()
            assert (await rest.call("GET", f"{T}/stats")).status == 200
            assert answers == []
            store.release_reads()
        assert [answer.body for answer in answers] == [b"2"]


@pytest.mark.parametrize("deleted", [False, True])
async def test_an_entry_that_goes_while_it_is_read(bed: Bed, deleted: bool) -> None:
    store = Broken()
    async with serving(Config(managedLedgerCacheSizeMB=0), storage=store) as made:
        rest, wire = rest_of(made), await made.connect()
        ((ledger, _),) = await published(wire, 1)
        await rest.done("PUT", f"{T}/unload")
        await wire.next()
        made.broker.cluster.cache.trim()
        store.holding_reads = True
        async with asked(rest, f"{T}/ledger/{ledger}/entry/0") as answers:
            await wire.alive()
            await rest.done("DELETE", T if deleted else f"{T}/truncate")
            store.release_reads()
        assert [(answer.status, answer.reason) for answer in answers] == [(404, "Message id not found")]


async def test_an_entry_that_cannot_be_read(bed: Bed) -> None:
    async with serving(Config(managedLedgerCacheSizeMB=0), storage=Broken()) as made:
        rest, wire = rest_of(made), await made.connect()
        ((ledger, _),) = await published(wire, 1)
        made.broker.cluster.cache.trim()
        status, text = await rest.refused("GET", f"{T}/ledger/{ledger}/entry/0")
        assert (status, "the disk is broken" in text) == (500, True)


async def test_a_batch_is_read_as_one_message(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    entry = batch_of(b"a", b"b")
    ((ledger, _),) = await wire.publish(entry, num_messages=2)
    answer = await rest.call("GET", f"{T}/ledger/{ledger}/entry/0")
    assert entry.endswith(answer.body)
    assert (answer.headers["X-Pulsar-num-batch-message"], answer.body.count(b"\x18\x01")) == ("2", 2)
