"""Fuzz target of bytes that clients write to a whole broker. Only the clients' own connections may fail."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from random import Random

import trio
import trio.testing

from pulsarium.broker.config import Config
from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.web.admin.rest import TOPICS, rest_of
from tests.broker.wire import PATIENCE, Bed, Type, Wire, batch_of, frame_of, plain, serving
from yardsticks.fuzz import mutations
from yardsticks.fuzz.entries import entry_like
from yardsticks.fuzz.frames import cut
from yardsticks.fuzz.oracle import Finding, watched
from yardsticks.fuzz.recorded import Chunk, conversations
from yardsticks.fuzz.target import Target

CONNECTIONS = 3
TIME_PASSES = 3  # connection number of a chunk that lets time pass instead of writing bytes
SECONDS = (0.1, 1.0, 40.0)  # times that such a chunk lets pass, chosen by the chunk's size
LOOKED_AT = ("/metrics", "/", f"{TOPICS}/t/stats", f"{TOPICS}/t/internalStats")
FROM_CLIENTS = [number for number, spec in COMMANDS.items() if spec.direction is not Direction.BROKER]
CONFIG = Config(
    transactionCoordinatorEnabled=True,
    acknowledgmentAtBatchIndexLevelEnabled=True,
    exposingBrokerEntryMetadataToClientEnabled=True,
    brokerEntryMetadataInterceptors=(
        "org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor",
        "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor",
    ),
)


class Commands(Target):
    """The target of client connections.

    An input is a sequence of chunks `[connection u8][size u16][bytes]`. A chunk without bytes closes its connection.
    """

    name = "commands"
    fresh = 400

    def run(self, data: bytes) -> None:
        with watched():
            trio.run(play, chunks_of(data), clock=trio.testing.MockClock(autojump_threshold=0))

    def mutate(self, data: bytes, others: Sequence[bytes], random: Random) -> bytes:
        chunks = chunks_of(data)
        other = chunks_of(random.choice(others)) if others else []
        for _ in range(random.choice((1, 1, 2, 4))):
            if random.random() < 0.1:
                made = random.choice(
                    (frame(mutations.any_command(FROM_CLIENTS, random)), b"", b"x" * random.randint(0, 2))
                )
                chunks.insert(random.randint(0, len(chunks)), (random.randint(0, CONNECTIONS), made))
            else:
                chunks = mutations.list_of(chunks, other, random, lambda chunk: changed(chunk, random))
        return data_of(chunks)

    def seeds(self) -> Iterable[bytes]:
        for conversation in conversations():
            yield data_of(conversation)
        for number in FROM_CLIENTS:
            yield data_of([(0, CONNECT), (0, frame(mutations.any_command([number], Random(number))))])
        yield data_of([(0, CONNECT), *((0, data) for data in USUAL)])


CONNECT = frame_of(
    Type.CONNECT, client_version="fuzz", protocol_version=21, feature_flags={"supports_topic_watchers": True}
)
USUAL = [
    frame_of(Type.PRODUCER, topic="t", producer_id=0, request_id=1),
    *(
        frame_of(Type.SUBSCRIBE, topic="t", subscription=f"s{kind}", subType=kind, consumer_id=kind, request_id=2)
        for kind in pb.CommandSubscribe.SubType.values()
    ),
    frame_of(Type.SEND, plain(b"x", partition_key="k"), producer_id=0, sequence_id=0),
    frame_of(Type.SEND, batch_of(b"y", b"z"), producer_id=0, sequence_id=1, num_messages=2),
    *(frame_of(Type.FLOW, consumer_id=kind, messagePermits=10) for kind in pb.CommandSubscribe.SubType.values()),
    frame_of(Type.ACK, consumer_id=1, ack_type=0, message_id=[{"ledgerId": 0, "entryId": 1, "ack_set": [1]}]),
    frame_of(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=3),
    frame_of(Type.SEEK, consumer_id=0, request_id=3, message_id={"ledgerId": 0, "entryId": 0}),
]


def chunks_of(data: bytes) -> list[Chunk]:
    chunks: list[Chunk] = []
    at = 0
    while at + 3 <= len(data):
        size = int.from_bytes(data[at + 1 : at + 3], "big")
        chunks.append((data[at] % (CONNECTIONS + 1), data[at + 3 : at + 3 + size]))
        at += 3 + size
    return chunks


def data_of(chunks: Iterable[Chunk]) -> bytes:
    return b"".join(
        bytes([number % (CONNECTIONS + 1)]) + len(data[:65_535]).to_bytes(2, "big") + data[:65_535]
        for number, data in chunks
    )


def changed(chunk: Chunk, random: Random) -> Chunk:
    """Return a changed chunk, mostly one in which one frame is changed."""
    number, data = chunk
    kind = random.random()
    if kind < 0.05:
        return random.randint(0, CONNECTIONS), data
    frames, _ = cut(data)
    if kind < 0.1 or not frames:
        return number, mutations.any_bytes(data, random)
    at = random.randrange(len(frames))
    head, trailing = frames[at]
    if trailing and random.random() < 0.6:
        frames[at] = head, entry_like(trailing, random)
    else:
        frames[at] = mutations.head(head, random), trailing
    return number, b"".join(frame(*each) for each in frames)


async def play(chunks: Iterable[Chunk]) -> None:
    """Write the chunks to a broker, and check that it still serves another client and has closed all other sessions."""
    async with serving(CONFIG) as bed, trio.open_nursery() as nursery:
        calm = Calm(bed)
        await calm.connect(nursery)
        wires: dict[int, Wire] = {}
        for number, data in chunks:
            if number == TIME_PASSES:
                await trio.sleep(SECONDS[len(data) % len(SECONDS)])
                continue
            if number not in wires:
                wires[number] = bed.dial()
                nursery.start_soon(listen, wires[number])
            wire = wires[number]
            if data and not wire.ended:
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    await wire.write(data)
            if not data or wire.ended:
                await wires.pop(number).aclose()
            await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(1)  # timers that the chunks started fire
        await calm.goes_on()
        for wire in wires.values():
            await wire.aclose()
        await trio.testing.wait_all_tasks_blocked()
        if len(bed.broker.sessions) != 1:
            raise Finding("sessions stay", f"{len(bed.broker.sessions)} sessions after all but one hung up")
        await calm.goes_on()
        nursery.cancel_scope.cancel()


# Answers of the broker to HTTP and TLS at its binary port.
TO_STRANGERS = (b"HTTP/1.1 400 ", b"no TLS here")


async def listen(wire: Wire) -> None:
    """Read the broker's answers, and check that they are whole frames with commands of a broker."""
    decoder, command = FrameDecoder(), pb.BaseCommand()
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while data := await wire.stream.receive_some(1 << 20):
            if data.startswith(TO_STRANGERS):
                return
            for head, _ in decoder.feed(bytes(data)):
                command.ParseFromString(head)
                if COMMANDS[command.type].direction is Direction.CLIENT:
                    raise Finding("a client's command", str(command))
            if decoder.error is not None:
                raise Finding("a broken frame of the broker", str(decoder.error))
    wire.ended = True


class Calm:
    """A client that does nothing odd, and that also looks at the broker over REST."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._rest = rest_of(bed)
        self._answered = trio.Event()

    async def connect(self, nursery: trio.Nursery) -> None:
        self._wire = await self._bed.connect()
        nursery.start_soon(self._answer)

    async def _answer(self) -> None:
        while True:
            received = await self._wire.next(within=math.inf)
            if received.command.type == Type.PONG:
                self._answered.set()
            elif received.command.type == Type.PING:
                await self._wire.send(Type.PONG)
            else:
                raise Finding("the other connection", str(received.command))

    async def goes_on(self) -> None:
        """Check that the broker answers PING, and that its metrics and its REST API work."""
        self._answered = trio.Event()
        await self._wire.send(Type.PING)
        with trio.fail_after(PATIENCE):
            await self._answered.wait()
        for url in LOOKED_AT:
            answer = await self._rest.call("GET", url)
            if answer.status >= 500:
                raise Finding(f"{answer.status} {url}", answer.body.decode())
