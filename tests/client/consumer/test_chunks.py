"""Messages put together from chunks (PIP-37)."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest
import trio
from anyio.abc import TaskGroup
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from pulsarium.client import Client, CompressionType, Consumer, MessageId
from pulsarium.client.consumer.chunks import Chunks, Whole
from pulsarium.client.consumer.options import ConsumerOptions, ConsumerType, InitialPosition
from pulsarium.client.entry.decoding import Decoded, UnreadableEntry
from pulsarium.client.producer.draft import now
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.both import run_on
from tests.client.consumer.started import all_of, data_of, received
from tests.client.entry.encrypted import Keys
from tests.client.hostile.clocks import on_both
from tests.client.in_process import InProcess, in_process

MAX = 10  # maxMessageSize of the broker, in bytes


class NoTasks:
    """A task group that accepts tasks and never runs them."""

    def __init__(self) -> None:
        self.started = 0

    def start_soon(self, *arguments: Any) -> None:
        self.started += 1


class Assembly:
    """Chunks of messages, and the entries that their assembly acknowledged."""

    def __init__(self, tasks: TaskGroup | None = None, **options: Any) -> None:
        self.tasks = NoTasks()
        self.acked: list[int] = []
        options = {"expire_time_of_incomplete_chunked_message": 0, **options}
        self.chunks = Chunks(ConsumerOptions("t", "s", **options), tasks or cast(TaskGroup, self.tasks), self._ack)

    def _ack(self, message_ids: Sequence[MessageId]) -> None:
        self.acked += [message_id.entry_id for message_id in message_ids]

    def add(
        self, entry: int, uuid: str, number: int, count: int = 3, payload: bytes = b"xx", **fields: Any
    ) -> Whole | None:
        given = {"total_chunk_msg_size": count * MAX, "publish_time": now(), **fields}
        metadata = pb.MessageMetadata(uuid=uuid, chunk_id=number, num_chunks_from_msg=count, **given)
        return self.chunks.add(MessageId(1, entry, 2), Decoded(metadata, payload), MAX)


def entries_of(whole: Whole | None) -> list[int]:
    assert whole is not None
    return [entry for _, entry in whole.message_id.entries]


def without_clock(test: Callable[[], None]) -> Callable[[], None]:
    """Run a plain test inside an event loop, because `anyio.current_time` works only there."""

    async def inside() -> None:
        test()

    def plain() -> None:
        run_on("asyncio", inside)

    plain.__name__ = test.__name__
    return plain


@without_clock
def test_chunks_in_order_become_one_message() -> None:
    made = Assembly()
    assert made.add(5, "u", 0) is None
    assert made.add(6, "v", 0) is None
    assert made.add(7, "u", 1) is None
    whole = made.add(9, "u", 2, payload=b"y")
    assert whole is not None
    assert whole.message_id == MessageId(1, 9, 2)
    assert whole.message_id.first_chunk == MessageId(1, 5, 2)
    assert whole.message_id.entries == ((1, 5), (1, 7), (1, 9))
    assert [chunk.payload for chunk in whole.chunks] == [b"xx", b"xx", b"y"]
    assert len(made.chunks) == 1
    assert made.chunks.first == MessageId(1, 6, 2)
    assert made.acked == []


@without_clock
def test_the_producer_began_anew() -> None:
    """The producer sends the same message again at other entries, so the earlier chunks will never become whole."""
    made = Assembly()
    made.add(1, "u", 0)
    made.add(2, "u", 1)
    made.add(3, "u", 0)
    assert made.acked == [1, 2]
    made.add(4, "u", 1)
    assert entries_of(made.add(5, "u", 2)) == [3, 4, 5]
    assert made.acked == [1, 2]


@without_clock
def test_delivered_again_from_the_first() -> None:
    made = Assembly()
    made.add(1, "u", 0)
    made.add(2, "u", 1)
    made.add(1, "u", 0)
    made.add(2, "u", 1)
    assert entries_of(made.add(3, "u", 2)) == [1, 2, 3]
    assert made.acked == []


@without_clock
def test_a_chunk_that_was_sent_or_delivered_twice() -> None:
    made = Assembly()
    made.add(1, "u", 0)
    made.add(2, "u", 1)
    made.add(3, "u", 1)  # sent twice
    assert made.acked == [3]
    made.add(2, "u", 1)  # delivered twice
    assert entries_of(made.add(4, "u", 2)) == [1, 2, 4]
    assert made.acked == [3]


@without_clock
def test_a_chunk_is_lost() -> None:
    made = Assembly()
    made.add(1, "u", 0)
    assert made.add(3, "u", 2) is None
    assert len(made.chunks) == 0
    assert made.add(2, "u", 1) is None
    assert made.acked == []  # the broker redelivers the chunks, and the message may be whole then


@pytest.mark.parametrize(("expiry", "acked"), [(60, [1]), (0, [])])
def test_a_chunk_without_beginning_is_acknowledged_when_it_is_old(expiry: float, acked: list[int]) -> None:
    made = Assembly(expire_time_of_incomplete_chunked_message=expiry)
    made.add(1, "u", 1, publish_time=now() - 61_000)
    made.add(2, "v", 1)
    assert made.acked == acked


@pytest.mark.parametrize("acknowledges", [False, True])
def test_too_many_incomplete_messages_push_out_the_oldest(acknowledges: bool) -> None:
    @without_clock
    def test() -> None:
        made = Assembly(max_pending_chunked_message=2, auto_ack_oldest_chunked_message_on_queue_full=acknowledges)
        made.add(1, "u", 0)
        made.add(2, "v", 0)
        made.add(3, "u", 1)
        made.add(4, "w", 0)
        assert made.acked == ([1, 3] if acknowledges else [])
        assert made.add(5, "u", 2) is None
        made.add(6, "v", 1)
        assert entries_of(made.add(7, "v", 2)) == [2, 6, 7]

    test()


@without_clock
def test_any_number_of_messages_may_be_incomplete_without_a_limit() -> None:
    made = Assembly(max_pending_chunked_message=0)
    for number in range(100):
        made.add(number, str(number), 0)
    assert len(made.chunks) == 100


@pytest.mark.parametrize(
    "fields",
    [
        {"total_chunk_msg_size": 3 * MAX + 1},
        {"total_chunk_msg_size": 2},
        {"total_chunk_msg_size": -1},
        {"count": 2**31 - 1, "total_chunk_msg_size": 2**31 - 2},
        {"number": 3},
        {"number": -1},
        {"payload": b""},
    ],
    ids=str,
)
def test_claims_that_no_broker_takes_are_unreadable(fields: dict[str, Any]) -> None:
    made = Assembly()
    with pytest.raises(UnreadableEntry) as caught:
        made.add(1, "u", fields.pop("number", 0), **fields)
    assert caught.value.validation_error == pb.CommandAck.UncompressedSizeCorruption
    assert len(made.chunks) == 0


@without_clock
def test_more_bytes_than_claimed() -> None:
    made = Assembly()
    made.add(1, "u", 0, total_chunk_msg_size=3)
    with pytest.raises(UnreadableEntry, match="more bytes"):
        made.add(2, "u", 1, total_chunk_msg_size=30)  # the size in the first chunk counts
    assert made.acked == [1]  # the caller that gets the error acknowledges entry 2
    assert len(made.chunks) == 0


@without_clock
def test_a_message_with_chunks_that_cannot_be_decrypted_is_told_of_once() -> None:
    made = Assembly()

    def fail(uuid: str, number: int, *, acknowledge: bool = False) -> bool:
        metadata = pb.MessageMetadata(uuid=uuid, chunk_id=number, num_chunks_from_msg=3)
        return made.chunks.fail(metadata, acknowledge=acknowledge)

    assert [fail("u", number) for number in range(3)] == [True, False, False]
    made.add(1, "v", 0)
    assert fail("v", 1)
    assert made.acked == []
    made.add(2, "w", 0)
    assert fail("w", 1, acknowledge=True)
    assert made.acked == [2]
    assert not fail("w", 2)
    assert made.chunks.fail(pb.MessageMetadata(), acknowledge=False)


@without_clock
def test_nothing_waits_for_it() -> None:
    made = Assembly(expire_time_of_incomplete_chunked_message=60)
    made.add(1, "u", 0)
    made.chunks.clear()
    assert made.add(2, "u", 1) is None
    assert made.acked == []
    assert made.chunks.first is None


@on_both
async def test_after_a_while_it_is_given_up() -> None:
    async with anyio.create_task_group() as tasks:
        made = Assembly(tasks, expire_time_of_incomplete_chunked_message=5.0)
        made.add(1, "u", 0)
        await anyio.sleep(2.5)
        made.add(2, "v", 0)
        made.add(3, "u", 1)
        await anyio.sleep(3.5)
        assert made.acked == [1, 3]
    assert made.acked == [1, 3, 2]  # the task for expiry ended with the last pending message


@on_both
async def test_a_task_runs_only_while_something_is_incomplete() -> None:
    async with anyio.create_task_group() as tasks:
        made = Assembly(tasks, expire_time_of_incomplete_chunked_message=1000)
        for start in range(0, 9, 3):
            for number in range(3):
                made.add(start + number, str(start), number)
                await anyio.lowlevel.checkpoint()
        for number in range(3):
            made.add(10 + number, "v", number)  # before the task had a chance to run
        made.add(20, "w", 0)
        made.chunks.clear()


# ---- Chunks in any order

arrivals = st.lists(
    st.tuples(st.sampled_from("uvw"), st.integers(0, 2), st.booleans(), st.binary(min_size=1, max_size=MAX + 2)),
    max_size=60,
)


@given(arrivals, st.integers(0, 3), st.booleans())
def test_chunks_in_any_order_give_only_whole_messages(
    given_arrivals: list[tuple[str, int, bool, bytes]], most: int, acknowledges: bool
) -> None:
    """The consumer delivers only chunks 0, 1 and 2 of one message, in order, and nothing that it has acknowledged.

    The size of the chunks in memory stays below the claimed sizes.
    """

    @without_clock
    def test() -> None:
        made = Assembly(max_pending_chunked_message=most, auto_ack_oldest_chunked_message_on_queue_full=acknowledges)
        sent: dict[int, tuple[str, int, bytes]] = {}
        delivered: list[int] = []
        for entry, (uuid, number, again, payload) in enumerate(given_arrivals):
            same = [old for old, (u, n, _) in sent.items() if (u, n) == (uuid, number) and old not in made.acked]
            if again and same:  # redelivered, because it is not acknowledged
                entry, payload = same[-1], sent[same[-1]][2]
            sent[entry] = uuid, number, payload
            try:
                whole = made.add(entry, uuid, number, payload=payload, total_chunk_msg_size=12)
            except UnreadableEntry:
                continue
            if whole is not None:
                found = entries_of(whole)
                assert [sent[one] for one in found] == [
                    (uuid, index, chunk.payload) for index, chunk in enumerate(whole.chunks)
                ]
                assert len(found) == 3
                assert not set(found) & set(made.acked)
                assert sum(len(chunk.payload) for chunk in whole.chunks) <= 12
                delivered += found
            assert len(made.chunks) <= (most or 3)
            kept = sum(len(chunk.payload) for one in made.chunks._pending.values() for chunk in one.chunks)
            assert kept <= 12 * len(made.chunks)

    test()


@given(st.permutations([("u", n) for n in range(4)] + [("v", n) for n in range(4)]), st.data())
def test_chunks_in_order_are_delivered(order: list[tuple[str, int]], data: st.DataObject) -> None:
    """Chunks of another message may come between, and a chunk may come again."""

    @without_clock
    def test() -> None:
        made = Assembly(max_pending_chunked_message=2)
        following = {"u": 0, "v": 0}
        whole: dict[str, Whole | None] = {}
        entry = 0
        for uuid, _ in order:
            number = following[uuid]
            following[uuid] += 1
            entry += 1
            whole[uuid] = made.add(entry, uuid, number, count=4, payload=b"%d" % number)
            if 0 < number < 3 and data.draw(st.booleans()):
                entry += 1
                made.add(entry, uuid, data.draw(st.integers(1, number)), count=4, payload=b"twice")
                assert made.acked[-1] == entry
        for found in whole.values():
            assert found is not None
            assert [chunk.payload for chunk in found.chunks] == [b"0", b"1", b"2", b"3"]

    test()


# ---- Messages in chunks (PIP-37), against our broker in this process


CHUNKING: dict[str, Any] = {"batching_enabled": False, "chunking_enabled": True, "chunk_max_message_size": 100}
SMALL = [b"first", b"second"]
LARGE = random.Random(0).randbytes(250)
ALL = [SMALL[0], LARGE, SMALL[1], LARGE[::-1]]
ENTRIES = 1 + 3 + 1 + 3


@asynccontextmanager
async def setup(**options: Any) -> AsyncIterator[tuple[InProcess, Client, list[MessageId]]]:
    """Publish two small messages and two messages of three chunks to a topic."""
    async with in_process() as inside, inside.client() as client:
        async with client.create_producer("t", **{**CHUNKING, **options}) as producer:
            ids = [await producer.send(content) for content in ALL]
        yield inside, client, ids


def reading(client: Client, **options: Any) -> Consumer[bytes]:
    return client.subscribe("t", "s", initial_position=InitialPosition.Earliest, **options)


async def backlog(inside: InProcess) -> int:
    await anyio.sleep(0.1)
    await trio.testing.wait_all_tasks_blocked()
    return inside.bed.subscription("s").cursor.backlog()


@pytest.mark.parametrize(
    ("compression_type", "consumer_type", "encryption_keys"),
    [
        *((CompressionType.NONE, kind, []) for kind in ConsumerType),
        *((compression, ConsumerType.Exclusive, []) for compression in CompressionType),
        (CompressionType.LZ4, ConsumerType.Exclusive, ["rsa"]),
        (CompressionType.NONE, ConsumerType.Shared, ["rsa"]),
    ],
)
async def test_received_whole_and_acknowledged_whole(
    autojump_clock: MockClock,
    compression_type: CompressionType,
    consumer_type: ConsumerType,
    encryption_keys: list[str],
) -> None:
    options = {"encryption_keys": encryption_keys, "crypto_key_reader": Keys()} if encryption_keys else {}
    async with (
        setup(compression_type=compression_type, **options) as (inside, client, ids),
        reading(client, consumer_type=consumer_type, crypto_key_reader=Keys()) as consumer,
    ):
        messages = await received(consumer, 4)
        assert [message.data() for message in messages] == ALL
        found = [message.message_id() for message in messages]
        assert found == ids
        assert [one.first_chunk for one in found] == [one.first_chunk for one in ids]
        assert [len(one.entries) for one in found] == [1, 3, 1, 3]
        assert await backlog(inside) == ENTRIES
        await consumer.acknowledge(messages[1])
        assert await backlog(inside) == ENTRIES - 3
        for message in messages:
            await consumer.acknowledge(message)
        assert await backlog(inside) == 0


async def test_a_chunked_message_is_acknowledged_cumulatively(autojump_clock: MockClock) -> None:
    async with setup() as (inside, client, _), reading(client) as consumer:
        await consumer.acknowledge_cumulative((await received(consumer, 2))[1])
        assert await backlog(inside) == ENTRIES - 4


@pytest.mark.parametrize("consumer_type", [ConsumerType.Exclusive, ConsumerType.Shared])
async def test_chunked_messages_come_again_after_a_loss(autojump_clock: MockClock, consumer_type: ConsumerType) -> None:
    async with setup() as (inside, client, _), reading(client, consumer_type=consumer_type) as consumer:
        for _ in range(3):
            await received(consumer, 2)
            await inside.cut()
            assert sorted(await data_of(consumer, 4)) == sorted(ALL)
            await consumer.redeliver_unacknowledged_messages()
        assert sorted(await data_of(consumer, 4)) == sorted(ALL)


@pytest.mark.parametrize("inclusive", [False, True])
async def test_seek_and_start_at_a_chunked_message(autojump_clock: MockClock, inclusive: bool) -> None:
    async with setup() as (inside, client, ids):
        expected = ALL[1:] if inclusive else ALL[2:]
        where = MessageId.deserialize(ids[1].serialize())
        async with reading(client, start_message_id_inclusive=inclusive) as consumer:
            await consumer.seek(where)
            messages = await received(consumer, len(expected))
            assert [message.data() for message in messages] == expected
            for message in messages:
                await consumer.acknowledge(message)
            assert await backlog(inside) == 0
        async with client.create_reader("t", where, start_message_id_inclusive=inclusive) as reader:
            assert await all_of(reader) == expected
            await reader.seek(where)
            assert await all_of(reader) == expected
            await inside.cut()
            assert await all_of(reader) == []


async def test_a_reader_that_begins_in_the_middle(autojump_clock: MockClock) -> None:
    """The reader omits chunks whose beginning it has not read."""
    async with setup() as (_, client, ids):
        first = ids[1].first_chunk
        assert first is not None
        second = MessageId(first.ledger_id, first.entry_id + 1)
        async with client.create_reader("t", second) as reader:
            assert await all_of(reader) == ALL[2:]


async def test_a_reader_goes_on_in_the_middle(autojump_clock: MockClock) -> None:
    async with (
        setup() as (inside, client, _),
        client.create_reader("t", MessageId.earliest, receiver_queue_size=1) as reader,
    ):
        seen = []
        for _ in range(4):
            seen.append((await reader.read_next()).data())
            await inside.cut()
        assert seen == ALL
        assert not await reader.has_message_available()
