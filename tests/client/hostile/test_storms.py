"""A hundred thousand frames of one kind: the client's memory does not grow with their number."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio
import anyio.lowlevel
import pytest

from pulsarium.client import AuthenticationToken, Client, Consumer, Producer, Receipt, errors
from pulsarium.client.connection.connection import Connection
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import frame_of, plain
from tests.client.hostile.clocks import on_both
from tests.client.hostile.left_over import connections_of, no_growth
from tests.client.hostile.played import Played, playing, saying, silence
from tests.client.peer import Peer, Type

SOME = 4_000
WHERE = pb.MessageIdData(ledgerId=1, entryId=1)
BAD = "pulsar://nowhere:1"
MOST_WAITING = 10 + 2000  # messages: a receive queue of ten, and the surplus that a broker may send


class Stage(NamedTuple):
    played: Played
    peer: Peer
    client: Client
    producer: Producer[bytes]
    consumer: Consumer[bytes]

    @property
    def connection(self) -> Connection:
        return connections_of(self.client)[0]


@asynccontextmanager
async def staged(**settings: Any) -> AsyncIterator[Stage]:
    """Open a producer and a consumer, both number 0, on one connection."""
    async with (
        playing(**settings) as (played, client),
        client.create_producer("t") as producer,
        client.subscribe("t", "s", receiver_queue_size=10) as consumer,
    ):
        await played.sent(Type.FLOW)
        yield Stage(played, played.connections[0], client, producer, consumer)


async def flood(peer: Peer, frame: bytes, times: int) -> None:
    """Send a frame many times, in pieces of about 60 kB that the client reads. Stop when the client closes."""
    step = max(1, 60_000 // len(frame))
    try:
        for begun in range(0, times, step):
            await peer.stream.send(frame * min(step, times - begun))
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass


async def is_read(stage: Stage) -> bool:
    """Return whether the client read everything. False means that the flood ended the connection."""
    before = stage.played.count(Type.PONG)
    try:
        await stage.peer.say(Type.PING)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return False
    while stage.played.count(Type.PONG) == before:
        if stage.played.streams[0].is_closed:
            return False
        await anyio.sleep(0.001)
    return True


#: Frames without a waiting request, or without news when they are repeated.
STORMS: dict[str, bytes] = {
    "PING": frame_of(Type.PING),
    "PONG": frame_of(Type.PONG),
    "SUCCESS for nobody": frame_of(Type.SUCCESS, request_id=10**9),
    "ERROR for nobody": frame_of(Type.ERROR, request_id=10**9, error=0, message="x"),
    "MESSAGE for nobody": frame_of(Type.MESSAGE, plain(b"x"), consumer_id=99, message_id=WHERE),
    "SEND_RECEIPT for nobody": frame_of(Type.SEND_RECEIPT, producer_id=99, sequence_id=1, message_id=WHERE),
    "SEND_RECEIPT for nothing": frame_of(Type.SEND_RECEIPT, producer_id=0, sequence_id=10**6, message_id=WHERE),
    "SEND_ERROR for nothing": frame_of(Type.SEND_ERROR, producer_id=0, sequence_id=10**6, error=0, message=""),
    "CLOSE_PRODUCER for nobody": frame_of(Type.CLOSE_PRODUCER, producer_id=99, request_id=1),
    "CLOSE_CONSUMER for nobody": frame_of(Type.CLOSE_CONSUMER, consumer_id=99, request_id=1),
    "CLOSE_PRODUCER": frame_of(Type.CLOSE_PRODUCER, producer_id=0, request_id=1, assignedBrokerServiceUrl=BAD),
    "CLOSE_CONSUMER": frame_of(Type.CLOSE_CONSUMER, consumer_id=0, request_id=1, assignedBrokerServiceUrl="x"),
    "TOPIC_MIGRATED for nobody": frame_of(
        Type.TOPIC_MIGRATED, resource_id=99, resource_type=pb.CommandTopicMigrated.Producer, brokerServiceUrl="x"
    ),
    "WATCH_TOPIC_UPDATE for nobody": frame_of(
        Type.WATCH_TOPIC_UPDATE, watcher_id=99, new_topics=["a", "b"] * 50, topics_hash="x"
    ),
    "ACTIVE_CONSUMER_CHANGE": frame_of(Type.ACTIVE_CONSUMER_CHANGE, consumer_id=0, is_active=True),
    "REACHED_END_OF_TOPIC": frame_of(Type.REACHED_END_OF_TOPIC, consumer_id=0),
    "AUTH_CHALLENGE": frame_of(Type.AUTH_CHALLENGE, server_version="x"),
    "MESSAGE of an old epoch": frame_of(Type.MESSAGE, plain(b"x"), consumer_id=0, message_id=WHERE, consumer_epoch=0),
    "MESSAGE nobody can read": frame_of(Type.MESSAGE, b"", consumer_id=0, message_id=WHERE),
    "MESSAGE": frame_of(Type.MESSAGE, plain(b"x"), consumer_id=0, message_id=WHERE),
}


@pytest.mark.parametrize("name", STORMS)
@on_both
async def test_a_storm_of_frames_takes_no_memory_and_everything_works_after_it(name: str) -> None:
    async with staged(authentication=AuthenticationToken("secret")) as stage:
        stage.played.record = False
        if name == "MESSAGE of an old epoch":
            await stage.consumer.redeliver_unacknowledged_messages()
        with no_growth(500_000):
            await flood(stage.peer, STORMS[name], SOME)
            stage.played.record = True
            await is_read(stage)
            assert sum(len(part.receiver) for part in stage.consumer._parts.all) <= MOST_WAITING
        assert (await stage.producer.send(b"x")).ledger_id == 1


async def settled(stage: Stage) -> None:
    """Check that a message can be published after the storm."""
    assert (await stage.producer.send(b"x")).ledger_id == 1


@pytest.mark.parametrize("name", ["PING", "MESSAGE nobody can read", "AUTH_CHALLENGE", "MESSAGE of an old epoch"])
@on_both
async def test_a_broker_that_makes_the_client_answer_and_does_not_read(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client ends the connection before its write buffer grows with what it has received."""
    async with staged(authentication=AuthenticationToken("secret"), keep_alive_interval=0) as stage:
        if name == "MESSAGE of an old epoch":
            await stage.consumer.redeliver_unacknowledged_messages()
        connection = stage.connection
        stream: Any = connection._stream
        stuck = anyio.Event()

        async def send(data: bytes) -> None:
            await stuck.wait()

        stream.send = send
        monkeypatch.setattr("pulsarium.client.connection.connection.MOST_PROVOKED", 1000)
        with no_growth(1_000_000):
            await flood(stage.peer, STORMS[name], 5_000)
        del stream.send
        stuck.set()
        connection.abort(errors.ConnectError("enough"))


@on_both
async def test_entries_damaged_on_their_way_are_not_sent_again_for_each_complaint() -> None:
    async with staged() as stage:
        stage.played.on[Type.SEND] = silence
        receipts: list[Receipt] = [stage.producer.send_nowait(b"x" * 1000) for _ in range(100)]
        await stage.played.sent(Type.SEND)
        stage.played.record = False
        sequence_id = 99
        complaint = frame_of(
            Type.SEND_ERROR, producer_id=0, sequence_id=sequence_id, error=pb.ChecksumError, message="no"
        )
        stage.played.on.clear()
        with no_growth():
            await flood(stage.peer, complaint, 10_000)
        for receipt in receipts:
            await receipt.wait()


@on_both
async def test_a_consumer_closed_again_and_again() -> None:
    """The client waits before it subscribes again, also when CLOSE_CONSUMER names the next broker."""
    async with staged() as stage:
        for hint in ("", "pulsar://a:6650"):
            before = stage.played.count(Type.SUBSCRIBE)

            async def close(peer: Peer, body: Any, hint: str = hint) -> None:
                await stage.played.answer(peer, body)
                more: dict[str, Any] = {"assignedBrokerServiceUrl": hint} if hint else {}
                await peer.say(Type.CLOSE_CONSUMER, consumer_id=body.consumer_id, request_id=1, **more)

            stage.played.on[Type.SUBSCRIBE] = close
            await stage.peer.say(Type.CLOSE_CONSUMER, consumer_id=0, request_id=1)
            await anyio.sleep(60)
            assert 10 <= stage.played.count(Type.SUBSCRIBE) - before < 60
        stage.played.on.clear()
        await stage.played.sent(Type.SUBSCRIBE, stage.played.count(Type.SUBSCRIBE) + 1)


@on_both
async def test_more_messages_than_were_asked_for() -> None:
    """A broker may send a few entries too many, as Pulsar does with batches, but not thousands."""
    async with staged() as stage:
        connections = len(stage.played.connections)
        await flood(stage.peer, STORMS["MESSAGE"], 5_000)
        await stage.played.sent(Type.SUBSCRIBE, 2)
        assert len(stage.played.connections) == connections + 1


@on_both
async def test_a_producer_that_did_not_ask_to_wait_is_not_kept_waiting() -> None:
    """A first answer with `producer_ready` false is only for producers that wait for exclusive access (PIP-68)."""
    async with playing() as (played, client):
        played.on[Type.PRODUCER] = saying(Type.PRODUCER_SUCCESS, producer_name="p", producer_ready=False)
        with pytest.raises(errors.Timeout):
            async with client.create_producer("t"):
                pass


@on_both
async def test_a_receipt_that_never_comes() -> None:
    """The client gives up the connection, and sends the message again on the next one."""
    async with staged(keep_alive_interval=5.0) as stage:
        stage.played.on[Type.SEND] = silence

        async def pong(peer: Peer, body: Any) -> None:
            await peer.say(Type.PONG)

        async def connect(peer: Peer, body: Any) -> None:
            stage.played.on.pop(Type.SEND, None)
            await stage.played.answer(peer, body)

        stage.played.on[Type.PING] = pong
        stage.played.on[Type.CONNECT] = connect
        assert (await stage.producer.send(b"x")).entry_id == 1
        assert stage.played.count(Type.SEND) == 2


@on_both
async def test_a_frame_that_is_never_finished() -> None:
    async with staged(keep_alive_interval=5.0) as stage:
        await stage.peer.stream.send(b"\x00\x4f\xff\xff\x00\x00\x00\x10" + b"x" * 10)
        await stage.played.sent(Type.CONNECT, 2)
        await settled(stage)


@on_both
async def test_a_long_list_of_topics_that_do_not_match() -> None:
    async with playing() as (played, client):
        names = [f"persistent://public/default/n{number}" for number in range(10_000)]
        played.on[Type.GET_TOPICS_OF_NAMESPACE] = saying(Type.GET_TOPICS_OF_NAMESPACE_RESPONSE, topics=names)
        async with client.subscribe(re.compile("public/default/t.*"), "s") as consumer:
            assert not consumer._parts.all


@pytest.mark.parametrize(
    "name", ["", "x/y", "a://b/c/d", "persistent://public/default/" + "t" * 100_000, "\x00", "t\n"]
)
@on_both
async def test_a_list_of_topics_with_garbage_in_it(name: str) -> None:
    async with playing() as (played, client):
        names = ["persistent://public/default/t1", name]
        played.on[Type.GET_TOPICS_OF_NAMESPACE] = saying(Type.GET_TOPICS_OF_NAMESPACE_RESPONSE, topics=names)
        try:
            async with client.subscribe(re.compile("public/default/.*"), "s") as consumer:
                assert 1 <= len(consumer._parts.all) <= 2
        except errors.PulsarError:
            pass


@on_both
async def test_a_receipt_of_a_later_message_is_not_taken_for_this_one() -> None:
    async with staged() as stage:

        async def wrong(peer: Peer, body: Any) -> None:
            del stage.played.on[Type.SEND]
            ids = {"producer_id": body.producer_id, "sequence_id": body.sequence_id + 5}
            await peer.say(Type.SEND_RECEIPT, message_id=pb.MessageIdData(ledgerId=99, entryId=1), **ids)

        stage.played.on[Type.SEND] = wrong
        assert (await stage.producer.send(b"x")).ledger_id == 1
        assert stage.played.count(Type.SEND) == 2
