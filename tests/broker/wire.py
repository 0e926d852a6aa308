"""A client made of frames, and a broker to talk to over streams in memory.

A test names each command that goes out and each frame that must come back, in order. A test that uses the
`autojump_clock` owns the time: waiting for half a minute of silence costs nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import trio
from trio.testing import memory_stream_pair

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config import PIP, Config, Profile, ServeOptions
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.server import open_core
from pulsarium.broker.session.transport import StreamTransport
from pulsarium.broker.storage.interface import Storage
from pulsarium.proto import batch, entry
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import signed
from pulsarium.proto.topic_name import TopicName

TOPIC = "persistent://public/default/t"
PATIENCE = 25.0  # seconds of the test's clock to wait for an expected frame; shorter than any keep-alive
VERSION = 21

Type = pb.BaseCommand
Exclusive = pb.CommandSubscribe.Exclusive
Shared = pb.CommandSubscribe.Shared
Failover = pb.CommandSubscribe.Failover
KeyShared = pb.CommandSubscribe.Key_Shared
Earliest = pb.CommandSubscribe.Earliest
Latest = pb.CommandSubscribe.Latest
Individual = pb.CommandAck.Individual
Cumulative = pb.CommandAck.Cumulative


class Received(NamedTuple):
    """A frame from the broker."""

    command: pb.BaseCommand
    trailing: bytes


class Message(NamedTuple):
    """A MESSAGE and those of its fields that tests read."""

    consumer_id: int
    position: Position
    payload: bytes
    redelivery_count: int
    command: pb.CommandMessage
    entry: bytes


def command(type: int, **fields: Any) -> pb.BaseCommand:
    """Build a command with a body, even an empty one. Fields are as in protobuf's constructors: dicts for messages."""
    base = pb.BaseCommand()
    base.type = type  # type: ignore[assignment]
    body = getattr(base, COMMANDS[type].field)
    body.SetInParent()
    body.MergeFrom(body.__class__(**fields))
    return base


def frame_of(type: int, trailing: bytes = b"", **fields: Any) -> bytes:
    return frame(command(type, **fields).SerializeToString(), trailing)


def plain(payload: bytes, *, checksum: bool = True, **metadata: Any) -> bytes:
    """Build the entry of one message."""
    fields = {"producer_name": "p", "sequence_id": 0, "publish_time": 1, **metadata}
    return entry.build(pb.MessageMetadata(**fields), payload, checksum=checksum)


def batch_of(*payloads: bytes, **metadata: Any) -> bytes:
    """Build the entry of a batch."""
    packed = batch.pack([(pb.SingleMessageMetadata(payload_size=len(p)), p) for p in payloads])
    return plain(packed, num_messages_in_batch=len(payloads), **metadata)


def message_id(position: Position, **fields: Any) -> dict[str, Any]:
    """Return a position as the fields of a MessageIdData."""
    return {"ledgerId": position.ledger_id % 2**64, "entryId": position.entry_id % 2**64, **fields}


def entry_ids(messages: Iterable[Message]) -> list[int]:
    return [message.position.entry_id for message in messages]


def position_of(message_id: pb.MessageIdData) -> Position:
    return Position(signed(message_id.ledgerId), signed(message_id.entryId))


class Wire:
    """A client's connection to a broker."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.inbox: deque[Received] = deque()  # frames that were read, but not returned to the test yet
        self.requests = 0
        self.sequences: dict[int, int] = {}  # producer id -> the next sequence id
        self._decoder = FrameDecoder()
        self.ended = False

    # sending

    async def write(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def send(self, type: int, trailing: bytes = b"", **fields: Any) -> None:
        await self.write(frame_of(type, trailing, **fields))

    def numbered(self, type: int, **fields: Any) -> bytes:
        """Build a frame with the next request id, for requests that go out together."""
        self.requests += 1
        return frame_of(type, request_id=self.requests, **fields)

    async def aclose(self) -> None:
        await self.stream.aclose()

    # receiving

    async def _read(self) -> bool:
        data = b""
        if not self.ended:
            data = bytes(await self.stream.receive_some(1 << 20))
        if not data:
            self.ended = True
            return False
        for head, trailing in self._decoder.feed(data):
            self.inbox.append(Received(pb.BaseCommand.FromString(head), trailing))
        assert self._decoder.error is None
        return True

    async def next(self, within: float = PATIENCE) -> Received:
        """Return the next frame of any type."""
        with trio.fail_after(within):
            while not self.inbox:
                assert await self._read(), "the broker closed the connection"
        return self.inbox.popleft()

    async def expect(self, type: int, within: float = PATIENCE) -> Any:
        """Expect a frame of this type next, and return its body."""
        received = await self.next(within)
        assert received.command.type == type, f"expected {COMMANDS[type].name}, got {received.command}"
        return getattr(received.command, COMMANDS[type].field)

    async def quiet(self, seconds: float = 0.5) -> None:
        """Expect no frame for `seconds`, and a connection that stays open."""
        with trio.move_on_after(seconds):
            while not self.inbox:
                assert await self._read(), "the broker closed the connection"
        assert not self.inbox, f"unexpected {self.inbox[0].command}"

    async def rest(self, seconds: float = 0.5) -> list[Received]:
        """Return all frames of the next `seconds`. `ended` tells whether the broker closed the connection meanwhile."""
        with trio.move_on_after(seconds):
            while await self._read():
                pass
        received = list(self.inbox)
        self.inbox.clear()
        return received

    async def closed(self, within: float = PATIENCE) -> list[Received]:
        """Wait until the broker closes the connection, and return the frames that it had sent before."""
        with trio.fail_after(within):
            try:
                while await self._read():
                    pass
            except trio.BrokenResourceError:  # the broker closed its socket with unread bytes
                self.ended = True
        return await self.rest()

    # requests and their replies

    async def reply(self, request_id: int, within: float = PATIENCE) -> pb.BaseCommand:
        """Wait for the answer to a request. Other frames that arrive before it stay in the inbox."""
        with trio.fail_after(within):
            while True:
                for index, (base, _) in enumerate(self.inbox):
                    body = getattr(base, COMMANDS[base.type].field)
                    if "request_id" in body.DESCRIPTOR.fields_by_name and body.request_id == request_id:
                        del self.inbox[index]
                        return base
                assert await self._read(), "the broker closed the connection"

    async def request(self, type: int, within: float = PATIENCE, **fields: Any) -> pb.BaseCommand:
        await self.write(self.numbered(type, **fields))
        return await self.reply(self.requests, within)

    async def ask(self, type: int, **fields: Any) -> Any:
        """Send a request, expect its usual reply, and return the body of the reply."""
        base = await self.request(type, **fields)
        assert base.type == COMMANDS[type].reply, base
        return getattr(base, COMMANDS[base.type].field)

    async def refused(self, type: int, **fields: Any) -> tuple[int, str]:
        """Send a request, expect ERROR, and return its code and text."""
        base = await self.request(type, **fields)
        assert base.type == Type.ERROR, base
        return base.error.error, base.error.message

    async def alive(self) -> None:
        """Expect an answer to PING, and no frame before it: the broker has handled all earlier commands silently."""
        await self.send(Type.PING)
        await self.expect(Type.PONG)

    # the usual conversations

    async def connect(self, version: int = VERSION, flags: Iterable[str] = (), **fields: Any) -> pb.CommandConnected:
        features = dict.fromkeys(flags, True)
        known: dict[str, Any] = {"client_version": "wire", "protocol_version": version, "feature_flags": features}
        await self.send(Type.CONNECT, **(known | fields))
        connected: pb.CommandConnected = await self.expect(Type.CONNECTED)
        return connected

    async def producer(self, topic: str = TOPIC, producer_id: int = 0, **fields: Any) -> pb.CommandProducerSuccess:
        success: pb.CommandProducerSuccess = await self.ask(
            Type.PRODUCER, topic=topic, producer_id=producer_id, **fields
        )
        self.sequences[producer_id] = success.last_sequence_id + 1
        return success

    def sends(self, *entries: bytes, producer_id: int = 0, num_messages: int = 1) -> bytes:
        """Build the frames that publish these entries."""
        first = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = first + len(entries)
        return b"".join(
            frame_of(Type.SEND, data, producer_id=producer_id, sequence_id=first + i, num_messages=num_messages)
            for i, data in enumerate(entries)
        )

    async def receipts(self, count: int) -> list[Position]:
        return [position_of((await self.expect(Type.SEND_RECEIPT)).message_id) for _ in range(count)]

    async def publish(self, *entries: bytes, producer_id: int = 0, num_messages: int = 1) -> list[Position]:
        """Publish entries in one write, and return their positions."""
        await self.write(self.sends(*entries, producer_id=producer_id, num_messages=num_messages))
        return await self.receipts(len(entries))

    async def publish_numbered(self, count: int) -> list[Position]:
        """Publish messages whose payloads are their numbers, and return their positions."""
        return await self.publish(*[plain(b"%d" % number) for number in range(count)])

    async def subscribe(
        self, topic: str = TOPIC, name: str = "sub", type: int = Exclusive, consumer_id: int = 0, **fields: Any
    ) -> None:
        await self.ask(Type.SUBSCRIBE, topic=topic, subscription=name, subType=type, consumer_id=consumer_id, **fields)

    async def flow(self, permits: int = 1000, consumer_id: int = 0) -> None:
        await self.send(Type.FLOW, consumer_id=consumer_id, messagePermits=permits)

    async def message(self, within: float = PATIENCE) -> Message:
        """Expect a MESSAGE with a good checksum next, and return it."""
        base, data = await self.next(within)
        assert base.type == Type.MESSAGE, base
        assert entry.checksum_matches(entry.strip_broker_metadata(data)) is not False
        body = base.message
        where = position_of(body.message_id)
        return Message(body.consumer_id, where, entry.payload_of(data), body.redelivery_count, body, data)

    async def messages(self, count: int) -> list[Message]:
        return [await self.message() for _ in range(count)]

    async def payloads(self, count: int) -> list[bytes]:
        return [message.payload for message in await self.messages(count)]

    async def ack(self, *positions: Position, type: int = Individual, consumer_id: int = 0, **fields: Any) -> None:
        """Acknowledge messages, and wait until the acknowledgement is stored."""
        ids = [message_id(position) for position in positions]
        fields = {"message_id": ids, "ack_type": type, **fields}
        response = await self.ask(Type.ACK, consumer_id=consumer_id, **fields)
        assert not response.HasField("error"), response

    async def redeliver(self, positions: Sequence[Position] = (), consumer_id: int = 0, **fields: Any) -> None:
        ids = [message_id(position) for position in positions]
        await self.send(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=consumer_id, message_ids=ids, **fields)


class Bed:
    """Brokers without ports, and connections to them. A connection leads to the first broker by default."""

    def __init__(self, broker: Broker, nursery: trio.Nursery) -> None:
        self.broker = broker
        self._nursery = nursery
        self._connections = 0

    def dial(self, broker: int = 0, host: str = "test") -> Wire:
        """Open a connection from `host`, and send nothing."""
        near, far = memory_stream_pair()
        self._connections += 1
        transport = StreamTransport(self.brokers[broker], far, f"/{host}:{self._connections}")
        self._nursery.start_soon(transport.serve)
        return Wire(near)

    @property
    def brokers(self) -> Sequence[Broker]:
        return self.broker.cluster.brokers

    def topic(self, name: str = TOPIC) -> PersistentTopic:
        """Return a topic that exists."""
        topic = self.broker.topics.find(TopicName.parse(name))
        assert isinstance(topic, PersistentTopic)
        return topic

    def subscription(self, name: str = "sub") -> PersistentSubscription:
        """Return a subscription of the usual topic."""
        return self.topic().subscriptions[name]

    async def connect(self, version: int = VERSION, flags: Iterable[str] = (), broker: int = 0, **fields: Any) -> Wire:
        wire = self.dial(broker)
        await wire.connect(version, flags, **fields)
        return wire


@asynccontextmanager
async def serving(
    config: Config | None = None,
    *,
    profile: Profile = PIP,
    data: Path | None = None,
    storage: Storage | None = None,
    brokers: int = 1,
) -> AsyncIterator[Bed]:
    """Serve brokers until the block is left. With `storage`, they use the test's own store."""
    options = ServeOptions(config=config or Config(), profile=profile, data=data, brokers=brokers)
    with ExitStack() as stack:
        if storage is not None:
            stack.enter_context(patch("pulsarium.broker.server.open_storage", return_value=storage))
        async with open_core(options) as broker, trio.open_nursery() as nursery:
            yield Bed(broker, nursery)
            nursery.cancel_scope.cancel()
