"""Readers, against our broker in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest
import trio
from trio.testing import MockClock

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.client import Client, MessageId, Reader
from pulsarium.client.errors import CryptoError, InvalidConfiguration
from pulsarium.proto import batch
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Wire, batch_of, plain
from tests.client.consumer.started import all_of
from tests.client.in_process import InProcess, in_process


class Setup:
    """A topic with an entry, a batch of three, and an entry."""

    def __init__(self, inside: InProcess, client: Client, wire: Wire, positions: list[Position]) -> None:
        self.inside = inside
        self.client = client
        self.wire = wire
        self.positions = positions

    def id(self, entry: int, index: int = -1) -> MessageId:
        return MessageId(*self.positions[entry], batch_index=index)

    def reader(self, start: MessageId, **options: Any) -> Reader:
        return self.client.create_reader("t", start, **options)


@asynccontextmanager
async def setup(*entries: bytes) -> AsyncIterator[Setup]:
    async with in_process() as inside, inside.client() as client:
        wire = await inside.wire()
        given = entries or (
            plain(b"1", publish_time=1000),
            batch_of(b"2", b"3", b"4", publish_time=2000),
            plain(b"5", publish_time=3000),
        )
        positions = await wire.publish(*given)
        yield Setup(inside, client, wire, positions)


ALL = [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.req("S429-14")
@pytest.mark.parametrize(
    ("entry", "index", "behind", "at"),
    [(0, -1, 1, 0), (1, 0, 2, 1), (1, 1, 3, 2), (1, 2, 4, 3), (1, -1, 4, 1), (2, -1, 5, 4)],
)
async def test_a_reader_begins_at_or_behind_any_message(
    autojump_clock: MockClock, entry: int, index: int, behind: int, at: int
) -> None:
    async with setup() as given:
        async with given.reader(given.id(entry, index)) as reader:
            assert await all_of(reader) == ALL[behind:]
        async with given.reader(given.id(entry, index), start_message_id_inclusive=True) as reader:
            assert await all_of(reader) == ALL[at:]


@pytest.mark.req("S429-14")
async def test_a_reader_begins_at_either_end(autojump_clock: MockClock) -> None:
    async with setup() as given:
        async with given.reader(MessageId.earliest) as reader:
            assert await all_of(reader) == ALL
            assert not await reader.has_message_available()
            await given.wire.publish(plain(b"6"))
            assert await reader.has_message_available()
            assert await all_of(reader) == [b"6"]
        async with given.reader(MessageId.latest) as reader:
            assert not await reader.has_message_available()
            await given.wire.publish(plain(b"7"))
            assert await all_of(reader) == [b"7"]
        async with given.reader(MessageId.latest, start_message_id_inclusive=True) as reader:
            assert await all_of(reader) == [b"7"]


@pytest.mark.req("S429-14", "S429-33")
async def test_our_reader_finds_nothing_in_an_empty_topic(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        for start in (MessageId.earliest, MessageId.latest):
            for inclusive in (False, True):
                async with client.create_reader("t", start, start_message_id_inclusive=inclusive) as reader:
                    assert not await reader.has_message_available()
                    (last,) = await reader.get_last_message_ids()
                    assert (last.ledger_id, last.entry_id) == (-1, -1)


@pytest.mark.req("S429-14")
async def test_seek_and_go_on(autojump_clock: MockClock) -> None:
    async with setup() as given, given.reader(MessageId.earliest) as reader:
        assert await all_of(reader) == ALL
        await reader.seek(given.id(1, 0))
        assert await all_of(reader) == ALL[2:]
        await reader.seek(1500)
        assert await all_of(reader) == ALL[1:]
        await reader.seek(datetime.fromtimestamp(2.5, UTC))
        assert await all_of(reader) == ALL[4:]
        await reader.seek(9999)
        assert await all_of(reader) == []
        await reader.seek(MessageId.earliest)
        assert await all_of(reader) == ALL
        await reader.seek(MessageId.latest)
        assert await all_of(reader) == []
        await given.wire.publish(plain(b"6"))
        assert await all_of(reader) == [b"6"]


async def test_a_reader_goes_on_after_a_loss_where_it_was(autojump_clock: MockClock) -> None:
    async with setup() as given, given.reader(MessageId.earliest) as reader:
        seen = []
        for _ in range(5):
            seen.append((await reader.read_next()).data())
            await given.inside.cut()
        assert seen == ALL
        assert not await reader.has_message_available()
        await given.inside.cut()
        await given.wire.publish(plain(b"6"))
        assert await all_of(reader) == [b"6"]


async def test_a_small_queue_and_many_messages(autojump_clock: MockClock) -> None:
    async with (
        setup(*[plain(b"%d" % i) for i in range(50)]) as given,
        given.reader(MessageId.earliest, receiver_queue_size=3, reader_name="r") as reader,
    ):
        assert await all_of(reader) == [b"%d" % i for i in range(50)]
        await trio.testing.wait_all_tasks_blocked()
        (subscription,) = given.inside.bed.topic().subscriptions.values()
        assert isinstance(subscription, PersistentSubscription)
        assert subscription.cursor.backlog() == 0


@pytest.mark.req("S429-14")
async def test_messages_that_compaction_removed_do_not_count(autojump_clock: MockClock) -> None:
    """The broker may name a removed message as the last one. The reader has nothing more after that whole entry."""
    singles = [
        (pb.SingleMessageMetadata(payload_size=0, compacted_out=gone), b"x") for gone in (True, False, True, True)
    ]
    entry = plain(batch.pack(singles), num_messages_in_batch=4)
    async with setup(entry) as given, given.reader(MessageId.earliest, receiver_queue_size=2) as reader:
        assert await all_of(reader) == [b"x"]


@pytest.mark.req("S429-14")
async def test_an_encrypted_message_without_a_key_ends_the_loop_with_its_error(autojump_clock: MockClock) -> None:
    secret = batch_of(b"?", b"?", encryption_keys=[{"key": "k", "value": b"v"}], encryption_param=b"n" * 12)
    async with setup(plain(b"1"), secret) as given, given.reader(MessageId.earliest) as reader:
        assert (await reader.read_next()).data() == b"1"
        assert await reader.has_message_available()
        with pytest.raises(CryptoError):
            await reader.read_next()
        assert not await reader.has_message_available()


async def test_async_for_ends_with_a_terminated_topic(autojump_clock: MockClock) -> None:
    async with setup() as given, given.reader(MessageId.earliest) as reader:
        given.inside.bed.topic().terminate()
        with anyio.fail_after(5):
            assert [message.data() async for message in reader] == ALL


# ---- Other options of a reader


async def test_a_reader_begins_with_what_is_not_too_old(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        wire = await inside.wire()
        now = inside.bed.broker.clock.now_ms()
        await wire.publish(*(plain(b"%d" % age, publish_time=now - age * 1000) for age in (300, 200, 100, 0)))
        for seconds, expected in ((250, 3), (150, 2), (50, 1), (1000, 4)):
            async with client.create_reader("t", start_message_from_rollback_duration=seconds) as reader:
                assert await all_of(reader) == [b"300", b"200", b"100", b"0"][-expected:]
                await inside.cut()
                assert await all_of(reader) == []
        async with client.create_reader("t", start_message_from_rollback_duration=50) as reader:
            await inside.cut()
            assert await all_of(reader) == [b"0"]


async def test_a_start_and_a_duration_exclude_each_other(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        with pytest.raises(InvalidConfiguration):
            client.create_reader("t")
        with pytest.raises(InvalidConfiguration):
            client.create_reader("t", MessageId.earliest, start_message_from_rollback_duration=5)


async def test_the_name_of_its_subscription(autojump_clock: MockClock) -> None:
    async with setup() as given, given.reader(MessageId.earliest, subscription_role_prefix="role"):
        (name,) = given.inside.bed.topic().subscriptions
        assert name.startswith("role-reader-")
