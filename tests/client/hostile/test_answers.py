"""Wrong, repeated and missing answers: the client raises a documented error or tries again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pulsarium.client import Client, MessageId, errors
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import frame_of
from tests.client.hostile.clocks import on_both
from tests.client.hostile.played import Answer, Played, error_answer, playing, saying, silence
from tests.client.peer import Peer, Type

Response = pb.CommandLookupTopicResponse

#: Every request that the client makes in `everything`.
REQUESTS = [
    Type.PARTITIONED_METADATA,
    Type.LOOKUP,
    Type.PRODUCER,
    Type.CLOSE_PRODUCER,
    Type.SUBSCRIBE,
    Type.GET_LAST_MESSAGE_ID,
    Type.ACK,
    Type.SEEK,
    Type.UNSUBSCRIBE,
    Type.CLOSE_CONSUMER,
]
QUIET = {Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER}  # the client does not report these failures to the application


async def everything(client: Client) -> None:
    """Make a call of each kind."""
    async with client.create_producer("t") as producer:
        assert await producer.send(b"x") == MessageId(1, 1)
    async with client.subscribe("t", "s", ack_receipt_enabled=True) as consumer:
        assert await consumer.get_last_message_ids() == [MessageId(1, 9)]
        await consumer.acknowledge(MessageId(1, 1))
        await consumer.acknowledge_cumulative(MessageId(1, 1))
        await consumer.seek(MessageId(1, 1))
    async with client.subscribe("t", "s") as consumer:
        await consumer.unsubscribe()


async def outcome(call: Callable[[], Awaitable[None]]) -> errors.PulsarError | None:
    """Return the client's own error, or None. Any other error fails the test."""
    try:
        await call()
    except errors.PulsarError as error:
        return error
    return None


@on_both
async def test_the_played_broker_alone_does_no_harm() -> None:
    async with playing() as (played, client):
        await everything(client)
        assert {base.type for base in played.seen} >= set(REQUESTS)


@pytest.mark.parametrize("answered", [False, True], ids=["no answer", "to another request"])
@pytest.mark.parametrize("type", REQUESTS, ids=lambda kind: COMMANDS[kind].name)
@on_both
async def test_without_an_answer_to_its_request_a_call_times_out(type: int, answered: bool) -> None:
    async with playing() as (played, client):

        async def elsewhere(peer: Peer, body: Any) -> None:
            body.request_id += 1000
            await played.answer(peer, body)

        played.on[type] = elsewhere if answered else silence
        error = await outcome(lambda: everything(client))
        assert (error is None) if type in QUIET else isinstance(error, errors.Timeout)


@pytest.mark.parametrize("type", REQUESTS, ids=lambda kind: COMMANDS[kind].name)
@on_both
async def test_an_answer_of_another_kind(type: int) -> None:
    """The client must not read it as the answer: the missing fields would be zeros, which mean something."""
    async with playing() as (played, client):
        wrong = Type.SUCCESS if COMMANDS[type].reply != Type.SUCCESS else Type.ACK_RESPONSE
        more: dict[str, Any] = {"consumer_id": 0} if wrong == Type.ACK_RESPONSE else {}
        played.on[type] = saying(wrong, **more)
        error = await outcome(lambda: everything(client))
        assert (error is None) if type in QUIET else isinstance(error, (errors.ConnectError, errors.Timeout))


@pytest.mark.parametrize("type", REQUESTS, ids=lambda kind: COMMANDS[kind].name)
@on_both
async def test_every_answer_twice_and_some_nobody_asked_for(type: int) -> None:
    async with playing() as (played, client):

        async def twice(peer: Peer, body: Any) -> None:
            await played.answer(peer, body)
            await played.answer(peer, body)
            await peer.say(Type.ERROR, request_id=body.request_id, error=pb.TopicNotFound, message="late")
            await peer.say(Type.ERROR, request_id=2**64 - 1, error=pb.UnknownError, message="for nobody")

        played.on[type] = twice
        await everything(client)


@pytest.mark.parametrize("type", [Type.PRODUCER, Type.SUBSCRIBE, Type.LOOKUP, Type.SEEK])
@on_both
async def test_every_server_error_has_its_exception(type: int) -> None:
    async with playing() as (played, client):
        for code in pb.ServerError.values():
            played.on[type] = error_answer(code, "the text")
            played.entries = 0
            error = await outcome(lambda: everything(client))
            assert isinstance(error, errors.BY_CODE[code])
            assert error.args[0] == "the text"


@on_both
async def test_an_error_with_a_text_of_megabytes() -> None:
    async with playing() as (played, client):
        played.on[Type.PRODUCER] = error_answer(pb.NotAllowedError, "x" * 5_000_000)
        with pytest.raises(errors.NotAllowedError):
            await everything(client)


@pytest.mark.parametrize("type", [*REQUESTS, Type.CONNECT, Type.SEND], ids=lambda kind: COMMANDS[kind].name)
@on_both
async def test_the_connection_closed_in_place_of_an_answer(type: int) -> None:
    """The broker closes the connection once. The client recovers, or reports that the connection was lost."""
    async with playing() as (played, client):
        played.on[type] = once(played, type, lambda peer: peer.close())
        error = await outcome(lambda: everything(client))
        assert error is None or isinstance(error, errors.ConnectError)
        await everything_works(client, played)


@pytest.mark.parametrize(
    "bytes",
    [
        b"\x00\x00\x00\x00",
        b"\x00\x00\x00\x03abc",
        b"\xff\xff\xff\xff\x00\x00\x00\x01",
        b"\x00\x00\x00\x08\x00\x00\x00\x09abcd",
        b"\x00\x00\x00\x08\x00\x00\x00\x04\xff\xff\xff\xff",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00\x00\x00\x08\x00\x00\x00\x00abcd",
        frame_of(Type.CONNECT, client_version="a client"),
        frame_of(Type.SEND, b"x", producer_id=0, sequence_id=0),
        b"\x00\x00\x00\x08\x00\x00\x00\x04\x08\xe7\x07\x00",  # a command of type 999
        b"\x00\x00\x00\x07\x00\x00\x00\x03\x08\x07\x00",  # a command without its body
    ],
    ids=range(11),
)
@pytest.mark.parametrize("type", [Type.CONNECT, Type.SUBSCRIBE], ids=lambda kind: COMMANDS[kind].name)
@on_both
async def test_bytes_that_are_no_answer(type: int, bytes: bytes) -> None:
    async with playing() as (played, client):

        async def garbage(peer: Peer, body: Any) -> None:
            await peer.stream.send(bytes)

        played.on[type] = garbage
        assert isinstance(await outcome(lambda: everything(client)), (errors.ConnectError, errors.Timeout))
        played.on.clear()
        await everything_works(client, played)


@pytest.mark.parametrize(
    ("version", "size"), [(-1, 0), (0, -1), (22, -(2**31)), (1_000_000, 1), (22, 1), (0, 2**31 - 1)]
)
@on_both
async def test_odd_words_of_welcome(version: int, size: int) -> None:
    async with playing() as (played, client):

        async def welcome(peer: Peer, body: Any) -> None:
            await peer.say(Type.CONNECTED, server_version="", protocol_version=version, max_message_size=size)

        played.on[Type.CONNECT] = welcome
        error = await outcome(lambda: everything(client))
        assert isinstance(error, errors.MessageTooBig) if size == 1 else error is None


def once(played: Played, type: int, wrong: Callable[[Peer], Awaitable[None]]) -> Answer:
    async def answer(peer: Peer, body: Any) -> None:
        del played.on[type]
        await wrong(peer)

    return answer


async def everything_works(client: Client, played: Played) -> None:
    played.entries = 0
    await everything(client)
