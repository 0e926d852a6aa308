"""The client as a context manager, and with brokers in one process."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.broker.lab import Lab
from pulsarium.client import InitialPosition, MessageId, connect, errors
from pulsarium.client.client import Client
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.options import ConsumerType
from pulsarium.client.opening import open_client
from pulsarium.client.producer.options import CompressionType
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC
from tests.client.hostile.clocks import on_both
from tests.client.in_process import InProcess, in_process
from tests.client.peer import Peer, Peers, Type
from tests.client.producer.stage import answer_producer


@on_both
async def test_a_url_that_cannot_be_read() -> None:
    with pytest.raises(errors.InvalidUrl):
        async with connect("localhost:6650"):
            pass


@on_both
async def test_nothing_is_opened_before_it_is_needed() -> None:
    peers = Peers()
    async with open_client("pulsar://a", peers.settings):
        await anyio.lowlevel.checkpoint()
    assert peers.dialled == []
    peers.close()


@pytest.mark.parametrize("error", [LookupError("mine"), ExceptionGroup("mine", [ValueError()])], ids=["one", "group"])
@on_both
async def test_errors_of_the_block_are_raised_unchanged(error: Exception) -> None:
    """The client's own task group does not wrap errors."""
    with pytest.raises(type(error), match="mine") as caught:
        async with connect("pulsar://a"):
            raise error
    assert caught.value is error


def test_asyncios_own_timeouts_and_tasks_work() -> None:
    """An application need not use anyio."""

    async def accept(peers: Peers) -> Peer:
        peer = await peers.next()
        await peer.take_in()
        await peer.lead_here()
        await answer_producer(peer)
        await peer.expect(Type.SEND)
        return peer

    async def publish_until_the_timeout(peers: Peers, accepting: asyncio.Task[Peer]) -> None:
        async with (
            asyncio.timeout(None) as timeout,
            open_client("pulsar://a", peers.settings) as client,
            client.create_producer("t") as producer,
        ):
            sends = asyncio.gather(*(producer.send(b"%d" % n) for n in range(3)))
            await accepting
            timeout.reschedule(asyncio.get_running_loop().time())
            await sends

    async def main() -> None:
        peers = Peers()
        accepting = asyncio.create_task(accept(peers))
        with pytest.raises(TimeoutError):
            await publish_until_the_timeout(peers, accepting)
        peer = accepting.result()
        await peer.expect(Type.CLOSE_PRODUCER)
        await peer.close()
        peers.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


# ---- The client's producer and our broker, in one process


NAME = TopicName.parse(TOPIC)


def reading(client: Client) -> Consumer:
    return client.subscribe("t", "s", initial_position=InitialPosition.Earliest)


def unload(inside: InProcess) -> None:
    inside.bed.broker.topics.unload(NAME)
    inside.bed.broker.turn.finish()


@pytest.mark.parametrize("batching", [False, True], ids=["plain", "batched"])
@pytest.mark.parametrize("compression", CompressionType)
async def test_sent_messages_are_received(
    autojump_clock: MockClock, compression: CompressionType, batching: bool
) -> None:
    contents = [b"%d " % n * 500 for n in range(10)]
    async with in_process() as inside, inside.client() as client:
        async with client.create_producer("t", compression_type=compression, batching_enabled=batching) as producer:
            receipts = [producer.send_nowait(content, partition_key="k", properties={"a": "b"}) for content in contents]
            ids = [await receipt.wait() for receipt in receipts]
        async with reading(client) as consumer:
            messages = [await consumer.receive() for _ in contents]
            assert [message.data() for message in messages] == contents
            assert [message.message_id() for message in messages] == ids
            assert {(m.partition_key(), m.properties()["a"], m.producer_name()) for m in messages} == {
                ("k", "b", producer.producer_name())
            }
            assert len({message_id.entry for message_id in ids}) == (1 if batching else 10)
            assert [message.sequence_id() for message in messages] == list(range(10))


async def test_no_session_stays_behind_at_the_broker(autojump_clock: MockClock) -> None:
    """The client leaves no task behind either: a task would keep the client's block from ending."""
    async with in_process() as inside:
        sessions = inside.bed.broker.sessions

        async def use(client: Client) -> None:
            async with client.create_producer("t") as producer, reading(client) as consumer:
                await producer.send(b"1")
                await consumer.receive()
                assert len(sessions) == 2  # one for lookups, and one through a proxy to the topic's broker

        async with inside.client() as client:
            await use(client)
        await anyio.sleep(0.1)
        assert len(sessions) == 0


async def test_a_client_that_is_left_while_it_reconnects(autojump_clock: MockClock) -> None:
    async with in_process() as inside:

        async def fail() -> None:
            async with inside.client() as client, client.create_producer("t") as producer:
                producer.send_nowait(b"1")
                unload(inside)
                await inside.cut()
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            await fail()


async def test_a_cancelled_block_ends_at_once(autojump_clock: MockClock) -> None:
    async with in_process() as inside:
        start = anyio.current_time()
        with anyio.move_on_after(5):
            async with inside.client() as client, client.create_producer("t") as producer:
                await producer.send(b"1")
                await anyio.sleep_forever()
        assert anyio.current_time() - start == pytest.approx(5, abs=0.1)
        await anyio.sleep(0.1)
        assert len(inside.bed.broker.sessions) == 0


# ---- Our client and several brokers in one process: redirects, and topics that move


TOPIC = "persistent://public/default/t"


async def give(inside: InProcess, topic: str, broker: int | None) -> None:
    """Unload the topic's bundle. With `broker`, tell its clients the new owner (PIP-307)."""
    cluster = inside.bed.broker.cluster
    bundle = cluster.ownership.bundle_of(TopicName.parse(topic))
    assert bundle is not None
    await cluster.unload([("public/default", bundle)], None if broker is None else inside.bed.brokers[broker])
    inside.bed.broker.turn.finish()


def owner(inside: InProcess, topic: str = TOPIC) -> int:
    found = inside.bed.broker.cluster.ownership.owner(TopicName.parse(topic))
    assert found is not None
    return inside.bed.brokers.index(found)


@pytest.mark.parametrize("broker", range(3))
async def test_redirects_lead_to_the_owner(autojump_clock: MockClock, broker: int) -> None:
    async with in_process(brokers=3) as inside, inside.client() as client:
        await give(inside, TOPIC, broker)
        async with (
            client.subscribe("t", "s") as consumer,
            client.create_producer("t") as producer,
            client.create_reader("t", MessageId.earliest) as reader,
        ):
            await producer.send(b"x")
            assert (await consumer.receive()).data() == b"x"
            assert (await reader.read_next()).data() == b"x"
        assert owner(inside) == broker
        assert set(inside.dialled) == {0, broker}


async def test_partitions_on_many_brokers(autojump_clock: MockClock) -> None:
    async with in_process(brokers=3) as inside, inside.client() as client:
        inside.partitioned("persistent://public/default/parts", 6)
        for n in range(6):
            await give(inside, f"persistent://public/default/parts-partition-{n}", n % 3)
        async with client.subscribe("parts", "s") as consumer, client.create_producer("parts") as producer:
            sent = [b"%d" % n for n in range(24)]
            for content in sent:
                await producer.send(content)
            assert sorted([(await consumer.receive()).data() for _ in sent]) == sorted(sent)
        assert set(inside.dialled) == {0, 1, 2}


async def test_the_next_owner_is_known_without_a_lookup(autojump_clock: MockClock) -> None:
    async with in_process(brokers=3) as inside, inside.client() as client:
        await give(inside, TOPIC, 1)
        async with client.subscribe("t", "s") as consumer, client.create_producer("t") as producer:
            await producer.send(b"before")
            assert inside.dialled == [0, 1]
            start = anyio.current_time()
            await give(inside, TOPIC, 2)
            await producer.send(b"after")
            assert [(await consumer.receive()).data() for _ in range(2)][-1] == b"after"
            assert anyio.current_time() - start < 0.09  # no backoff
            assert inside.dialled == [0, 1, 2]


async def test_nothing_is_lost_or_doubled_through_moves(autojump_clock: MockClock) -> None:
    """The topic moves to a named broker, or to the broker of the next lookup, or its connection is cut."""
    count = 400
    config = Config(brokerDeduplicationEnabled=True)
    async with in_process(config, brokers=3) as inside, inside.client() as client:
        got: dict[bytes, int] = {}
        async with (
            client.subscribe("t", "s", initial_position=InitialPosition.Earliest) as consumer,
            client.create_producer("t", producer_name="p", batching_max_messages=5) as producer,
        ):

            async def receive() -> None:
                async for message in consumer:
                    got.setdefault(message.data(), len(got))
                    await consumer.acknowledge(message)
                    if len(got) == count:
                        return

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(receive)
                for n in range(count):
                    producer.send_nowait(b"%d" % n)
                    if n % 40 == 10:
                        await give(inside, TOPIC, n // 40 % 3)
                    if n % 40 == 20:
                        await give(inside, TOPIC, None)
                    if n % 120 == 30:
                        await inside.cut()
                    if n % 5 == 0:
                        await anyio.sleep(0.02)
                await producer.flush()
                tasks.cancel_scope.deadline = anyio.current_time() + 30
        assert list(got) == [b"%d" % n for n in range(count)]
        async with client.subscribe("t", "all", initial_position=InitialPosition.Earliest) as consumer:
            assert [(await consumer.receive()).data() for _ in range(count)] == [b"%d" % n for n in range(count)]
            with anyio.move_on_after(1):
                raise AssertionError(await consumer.receive())


async def test_a_broker_that_ends(autojump_clock: MockClock) -> None:
    """The topics of the broker go to another one. With several addresses, the client asks another broker too."""
    async with in_process(brokers=3) as inside:
        async with inside.client("pulsar://here:6651,here:6650") as client, client.create_producer("t") as producer:
            await give(inside, TOPIC, 1)
            await producer.send(b"before")
            inside.bed.brokers[1].stop()
            inside.bed.broker.turn.finish()
            await producer.send(b"after")
            assert owner(inside) != 1
        async with inside.client() as client, client.create_reader("t", MessageId.earliest) as reader:
            assert [(await reader.read_next()).data() for _ in range(2)] == [b"before", b"after"]


# ---- Days that pass in no time, for our client


WEEK = 7 * 86_400


async def test_a_message_that_is_due_in_a_week() -> None:
    async with in_process() as inside, inside.client() as client:
        lab = inside.bed.broker.cluster.attached(Lab)
        async with client.subscribe("t", "s", consumer_type=ConsumerType.Shared) as consumer:
            async with client.create_producer("t") as producer:
                await producer.send(b"week", deliver_after=timedelta(seconds=WEEK).total_seconds())
            await lab.clock.advance(WEEK - 60)
            assert lab.why("t", "s").reason == "delayed"
            await lab.clock.advance(60)
            with anyio.fail_after(30):
                assert (await consumer.receive()).data() == b"week"
