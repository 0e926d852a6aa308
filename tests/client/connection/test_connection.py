"""Requests, handlers and the end of a single connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.client.connection.connection import LEAST, Connection
from pulsarium.client.connection.service_url import BrokerUrls
from pulsarium.client.errors import (
    AlreadyClosed,
    AuthorizationError,
    ConnectError,
    LocalProtocolError,
    PulsarError,
    ServiceUnitNotReady,
    Timeout,
)
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import command, frame_of
from tests.client.hostile.clocks import on_both
from tests.client.peer import Peer, Type, pipes


class Noted:
    """A handler of a consumer and of a producer that records its calls."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_message(self, command: pb.CommandMessage, trailing: bytes) -> None:
        self.told.append(("message", command.message_id.entryId, trailing))

    def on_end_of_topic(self) -> None:
        self.told.append("end")

    def on_active_change(self, is_active: bool) -> None:
        self.told.append(("active", is_active))

    def on_receipt(self, receipt: pb.CommandSendReceipt) -> None:
        self.told.append(("receipt", receipt.sequence_id))

    def is_stuck(self) -> bool:
        return False

    def on_send_error(self, error: pb.CommandSendError) -> None:
        self.told.append(("send error", error.sequence_id))

    def on_lost(self, error: PulsarError, owner: BrokerUrls | None = None) -> None:
        self.told.append(("lost", type(error)) if owner is None else ("lost", type(error), owner))


@asynccontextmanager
async def connected(**options: Any) -> AsyncIterator[tuple[Connection, Peer]]:
    near, far = pipes()
    connection, peer = Connection(near, "a:6650", **options), Peer(far)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(peer.take_in)
        await connection.handshake()
        tasks.start_soon(connection.run)
        yield connection, peer
        await connection.aclose()
        await peer.close()


def lookup(connection: Connection, topic: str = "t") -> pb.BaseCommand:
    return command(Type.LOOKUP, topic=topic, request_id=connection.next_request_id())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition. Everything is in memory, so the condition is true within a few turns of the loop."""
    for _ in range(1000):
        if condition():
            return
        await anyio.lowlevel.checkpoint()
    raise AssertionError("it did not happen")


async def failure(of: Awaitable[Any], into: list[Exception]) -> None:
    try:
        await of
    except PulsarError as error:
        into.append(error)


@on_both
async def test_replies_find_their_requests() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        got: dict[str, str] = {}

        async def ask(topic: str) -> None:
            reply = await connection.request(lookup(connection, topic))
            got[topic] = reply.command.lookupTopicResponse.brokerServiceUrl + reply.trailing.decode()

        tasks.start_soon(ask, "one")
        tasks.start_soon(ask, "two")
        asked = [await peer.expect(Type.LOOKUP) for _ in range(2)]
        assert asked[0].request_id != asked[1].request_id
        for question in reversed(asked):
            await peer.say(
                Type.LOOKUP_RESPONSE, b"!", request_id=question.request_id, brokerServiceUrl=f"for {question.topic}"
            )
        await until(lambda: len(got) == 2)
        assert got == {"one": "for one!", "two": "for two!"}


@on_both
async def test_a_request_needs_its_number() -> None:
    async with connected() as (connection, _):
        ack = command(Type.ACK, consumer_id=1, ack_type=pb.CommandAck.Individual)
        with pytest.raises(LocalProtocolError, match="request id"):
            await connection.request(ack)


@on_both
async def test_a_late_answer_is_ignored() -> None:
    async with connected() as (connection, peer):
        with anyio.move_on_after(0) as scope:
            await connection.request(lookup(connection))
        assert scope.cancelled_caught
        asked = await peer.expect(Type.LOOKUP)
        await peer.say(Type.LOOKUP_RESPONSE, request_id=asked.request_id)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.request, lookup(connection))
            asked = await peer.expect(Type.LOOKUP)
            await peer.say(Type.LOOKUP_RESPONSE, request_id=asked.request_id)


async def test_a_request_gives_up_an_answer_that_does_not_come(autojump_clock: MockClock) -> None:
    async with connected(operation_timeout=5, keep_alive=0) as (connection, _):
        start = anyio.current_time()
        with pytest.raises(Timeout, match="LOOKUP in 5 s"):
            await connection.request(lookup(connection))
        assert anyio.current_time() - start == pytest.approx(5)


@on_both
async def test_commands_find_their_handlers() -> None:
    async with connected() as (connection, peer):
        consumer, producer, other = Noted(), Noted(), Noted()
        connection.attach_consumer(1, consumer)
        connection.attach_producer(1, producer)
        connection.attach_consumer(2, other)
        connection.detach_consumer(2)
        where = {"ledgerId": 5, "entryId": 6}
        await peer.stream.send(
            frame_of(Type.MESSAGE, b"entry", consumer_id=1, message_id=where)
            + frame_of(Type.MESSAGE, b"nobody's", consumer_id=2, message_id=where)
            + frame_of(Type.ACTIVE_CONSUMER_CHANGE, consumer_id=1, is_active=True)
            + frame_of(Type.REACHED_END_OF_TOPIC, consumer_id=1)
            + frame_of(Type.SEND_RECEIPT, producer_id=1, sequence_id=7)
            + frame_of(Type.SEND_ERROR, producer_id=1, sequence_id=8, error=pb.ChecksumError, message="")
            + frame_of(Type.CLOSE_CONSUMER, consumer_id=1, request_id=2**64 - 1)
            + frame_of(
                Type.CLOSE_PRODUCER, producer_id=1, request_id=2**64 - 1, assignedBrokerServiceUrl="pulsar://b:6650"
            )
            + frame_of(Type.MESSAGE, b"too late", consumer_id=1, message_id=where)
        )
        await until(lambda: len(producer.told) == 3)
        lost = ("lost", ServiceUnitNotReady)
        assert consumer.told == [("message", 6, b"entry"), ("active", True), "end", lost]
        assert producer.told == [("receipt", 7), ("send error", 8), (*lost, BrokerUrls("pulsar://b:6650", ""))]
        assert other.told == []


@on_both
async def test_everybody_learns_of_the_end() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        errors: list[Exception] = []
        handler = Noted()
        connection.attach_consumer(1, handler)
        connection.attach_producer(1, handler)
        for _ in range(2):
            tasks.start_soon(failure, connection.request(lookup(connection)), errors)
        await peer.expect(Type.LOOKUP)
        await peer.close()
        await until(lambda: len(errors) == 2)
        assert [type(error) for error in errors] == [ConnectError, ConnectError]
        assert errors[0] is not errors[1]
        assert handler.told == [("lost", ConnectError)] * 2
        assert connection.is_lost
        with pytest.raises(ConnectError):
            connection.send_nowait(command(Type.FLOW, consumer_id=1, messagePermits=1))
        with pytest.raises(ConnectError):
            await connection.request(lookup(connection))


@on_both
async def test_a_broken_protocol_is_a_lost_connection() -> None:
    async with connected() as (connection, peer):
        handler = Noted()
        connection.attach_consumer(1, handler)
        await peer.stream.send(frame(b"nonsense"))
        await until(lambda: connection.is_lost)
        assert handler.told == [("lost", ConnectError)]


@on_both
async def test_queued_frames_leave_in_one_write_before_the_close() -> None:
    near, far = pipes()
    connection, peer = Connection(near, "a:6650"), Peer(far)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(peer.take_in)
        await connection.handshake()
        tasks.start_soon(connection.run)
        for permits in range(3):
            connection.send_nowait(command(Type.FLOW, consumer_id=1, messagePermits=permits))
        await connection.aclose()
    one = await far.receive()
    assert one == b"".join(frame_of(Type.FLOW, consumer_id=1, messagePermits=permits) for permits in range(3))
    with pytest.raises(anyio.EndOfStream):
        await far.receive()
    await far.aclose()
    with pytest.raises(AlreadyClosed):
        connection.send_nowait(command(Type.FLOW, consumer_id=1, messagePermits=1))


async def test_a_silent_broker_is_pinged_and_at_last_given_up(autojump_clock: MockClock) -> None:
    """The client sends PING after 30 seconds of silence, and ends the connection after 30 more."""
    async with connected() as (connection, peer):
        start = anyio.current_time()
        for times in range(1, 4):
            await peer.expect(Type.PING)
            assert anyio.current_time() - start == pytest.approx(30 * times)
            await peer.say(Type.PONG)
            await until(lambda: True)
        await peer.expect(Type.PING)
        with pytest.raises(anyio.EndOfStream):
            await peer.next()
        assert connection.is_lost
        assert anyio.current_time() - start == pytest.approx(30 * 5)


@pytest.mark.parametrize(("piece", "alive"), [(1, False), (3 * LEAST // 30, True)], ids=["drops", "slow"])
async def test_a_dripping_frame_is_no_answer_to_a_ping(autojump_clock: MockClock, piece: int, alive: bool) -> None:
    """Single bytes of a frame are no answer to PING. A big frame may take longer."""
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        await peer.stream.send((5_000_000).to_bytes(4, "big") + (4).to_bytes(4, "big"))

        async def drip() -> None:
            while not connection.is_lost:
                await anyio.sleep(1)
                await peer.stream.send(bytes(piece))

        tasks.start_soon(drip)
        await anyio.sleep(95)
        assert connection.is_lost is not alive
        tasks.cancel_scope.cancel()


@on_both
async def test_a_refused_handshake_closes_the_stream() -> None:
    near, far = pipes()
    connection, peer = Connection(near, "a:6650"), Peer(far)
    async with anyio.create_task_group() as tasks:

        async def refuse() -> None:
            await peer.expect(Type.CONNECT)
            await peer.say(Type.ERROR, request_id=1, error=pb.AuthorizationError, message="go away")
            with pytest.raises(anyio.EndOfStream):
                await peer.next()

        tasks.start_soon(refuse)
        with pytest.raises(AuthorizationError, match="go away"):
            await connection.handshake()
    await peer.close()


@pytest.mark.parametrize("refused", [False, True])
@on_both
async def test_a_canceled_request_is_undone_when_it_succeeds_late(refused: bool) -> None:
    async with connected() as (connection, peer):
        question = lookup(connection)
        undone: list[int] = []
        with anyio.CancelScope() as scope:
            scope.cancel()
            await connection.request(question, undo=lambda: undone.append(1))
        request_id = question.lookupTopic.request_id
        if refused:
            await peer.say(Type.ERROR, request_id=request_id, error=pb.MetadataError, message="no")
        for _ in range(2):
            await peer.say(Type.LOOKUP_RESPONSE, request_id=request_id, brokerServiceUrl="pulsar://b")
        await peer.say(Type.PING)
        await peer.expect(Type.LOOKUP)
        await peer.expect(Type.PONG)
        assert undone == ([] if refused else [1])


@on_both
async def test_a_request_that_succeeds_while_it_is_canceled_is_undone_at_once() -> None:
    """Exactly one of two things happens: the request returns the response, or `undo` is called."""
    async with connected() as (connection, _), anyio.create_task_group() as tasks:
        question = lookup(connection)
        request_id = question.lookupTopic.request_id
        replies: list[object] = []
        undone: list[int] = []
        scope = anyio.CancelScope()

        async def ask() -> None:
            with scope:
                replies.append(await connection.request(question, undo=lambda: undone.append(1)))

        tasks.start_soon(ask)
        routes = connection._routes
        await until(lambda: request_id in routes.waiters)
        await anyio.wait_all_tasks_blocked()
        routes.take(command(Type.LOOKUP_RESPONSE, request_id=request_id, brokerServiceUrl="pulsar://b"), b"")
        scope.cancel()
        await until(lambda: bool(replies or undone))
        assert len(replies) + len(undone) == 1
        assert not routes.late
