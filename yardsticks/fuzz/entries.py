"""Fuzz target of entries that are published to a broker.

Consumers of each kind, compaction, REST and our client then read the entries.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from random import Random

import anyio
import trio
import trio.testing
from google.protobuf.message import DecodeError

from pulsarium.broker.config import Config
from pulsarium.client.client import Client
from pulsarium.client.consumer.options import ConsumerType, InitialPosition
from pulsarium.client.errors import PulsarError
from pulsarium.proto import batch, compression
from pulsarium.proto.entry import crc32c, split
from pulsarium.proto.errors import EntryError
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.web.admin.rest import TOPICS, Rest, rest_of
from tests.broker.wire import TOPIC, Bed, Type, Wire, batch_of, frame_of, plain
from tests.client.in_process import in_process
from yardsticks.fuzz import mutations
from yardsticks.fuzz.frames import cut
from yardsticks.fuzz.oracle import Finding, watched
from yardsticks.fuzz.recorded import conversations
from yardsticks.fuzz.target import Target

MOST = 12  # entries of one input, at most
KINDS = (pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Shared, pb.CommandSubscribe.Key_Shared)
KINDS_OF_COMPRESSION = (pb.NONE, pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY)
CONFIG = Config(transactionCoordinatorEnabled=True, acknowledgmentAtBatchIndexLevelEnabled=True)


class Entries(Target):
    """The target of published entries.

    An input is a sequence of SEND frames. Their producer ids are corrected, so that the broker stores the entries.
    """

    name = "entries"
    fresh = 120

    def run(self, data: bytes) -> None:
        with watched():
            trio.run(play, sends_of(data), clock=trio.testing.MockClock(autojump_threshold=0))

    def mutate(self, data: bytes, others: Sequence[bytes], random: Random) -> bytes:
        other = cut(random.choice(others))[0] if others else []

        def change(found: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
            head, entry = found
            if random.random() < 0.1:
                return mutations.head(head, random), entry
            return head, entry_like(entry, random)

        frames = cut(data)[0]
        for _ in range(random.choice((1, 1, 2, 3))):
            frames = mutations.list_of(frames, other, random, change)
        return b"".join(frame(*each) for each in frames[:MOST])

    def seeds(self) -> Iterable[bytes]:
        for conversation in conversations():
            frames = [found for _, data in conversation for found in cut(data)[0] if found[1]]
            if frames:
                yield b"".join(frame(*each) for each in frames[:MOST])
        for entry in odd_entries():
            yield frame_of(Type.SEND, entry, producer_id=0, sequence_id=0)


def odd_entries() -> Iterable[bytes]:
    """Yield entries with odd metadata, most of which claim more than the entry contains."""
    packed = batch.pack([(pb.SingleMessageMetadata(payload_size=0, partition_key="k"), b"v%d" % i) for i in range(3)])
    for count in (-1, 0, 2, 4, 100_000, 2**31 - 1):
        yield plain(packed, num_messages_in_batch=count)
    for kind in KINDS_OF_COMPRESSION:
        squeezed = compression.compress(kind, packed)
        for size in (0, len(packed), len(packed) + 1, 2**31 - 1, 2**32 - 1):
            yield plain(squeezed, num_messages_in_batch=3, compression=kind, uncompressed_size=size)
    retained = [{"key": "values-compaction.retained", "value": "0"}]
    for count in (1, 3, 2**31 - 1):
        yield plain(packed, num_messages_in_batch=count, properties=retained)
        yield plain(b'[["djA=",{}]]', num_messages_in_batch=count, properties=retained)
    yield plain(b"x", encryption_keys=[{"key": "k", "value": b"v"}], encryption_algo="x", encryption_param=b"1")
    yield plain(b"x", uuid="u", chunk_id=0, num_chunks_from_msg=2**31 - 1, total_chunk_msg_size=-5)
    for delay in (0, -1, 2**63 - 1):
        yield plain(b"x", deliver_at_time=delay)
    for marker in (0, 10, 20, 21, 22, 99):
        yield plain(b"x", marker_type=marker, txnid_most_bits=0, txnid_least_bits=0)
    yield plain(b"x", partition_key="é" * 500, partition_key_b64_encoded=True, null_value=True)
    yield plain(b"x", schema_version=b"\0", event_time=2**64 - 1, ordering_key=b"\xff")
    yield batch_of(b"", b"x") + b"more"


def entry_like(entry: bytes, random: Random) -> bytes:
    """Return a changed entry: its metadata, its payload, the messages of its batch, or its bytes are changed."""
    kind = random.random()
    metadata = pb.MessageMetadata()
    try:
        parts = split(entry)
        metadata.ParseFromString(parts.metadata_bytes)
    except (EntryError, DecodeError):
        return mutations.any_bytes(entry, random)
    payload = parts.payload
    if kind < 0.08:
        return mutations.any_bytes(entry, random)
    if kind < 0.2:
        payload = mutations.any_bytes(payload, random)
    elif kind < 0.4:
        payload = batch_like(payload, metadata, random)
    elif kind < 0.5:
        metadata.compression = random.choice(KINDS_OF_COMPRESSION)
        metadata.uncompressed_size = len(payload)
        payload = compression.compress(metadata.compression, payload)
    else:
        mutations.message(metadata, random)
    encoded = metadata.SerializePartialToString()
    if random.random() < 0.1:
        encoded = mutations.spoiled(encoded, random)
    made = len(encoded).to_bytes(4, "big") + encoded + payload
    return made if random.random() < 0.2 else b"\x0e\x01" + crc32c(made).to_bytes(4, "big") + made


def batch_like(payload: bytes, metadata: pb.MessageMetadata, random: Random) -> bytes:
    """Return the payload of a changed batch, or of a new batch if `payload` is not a batch."""
    try:
        opened = compression.decompress(metadata.compression, payload, metadata.uncompressed_size)
        singles = batch.unpack(opened, metadata.num_messages_in_batch)
    except Exception:  # whatever the error, the payload is not a batch
        singles = []
    if not singles:
        singles = [(pb.SingleMessageMetadata(payload_size=0), b"v")] * random.choice((1, 2, 3, 70))
        metadata.num_messages_in_batch = len(singles)
    packed = b"".join(_packed(_single(single, len(value), random), value, random) for single, value in singles)
    if random.random() < 0.2:
        packed = mutations.any_bytes(packed, random)
    metadata.uncompressed_size = len(packed)
    return compression.compress(metadata.compression, packed)


def _single(found: pb.SingleMessageMetadata, size: int, random: Random) -> pb.SingleMessageMetadata:
    made = pb.SingleMessageMetadata()
    made.CopyFrom(found)
    made.payload_size = size
    if random.random() < 0.5:
        made.partition_key = random.choice(("k", "l", ""))
    if random.random() < 0.3:
        mutations.message(made, random)
    return made


def _packed(found: pb.SingleMessageMetadata, value: bytes, random: Random) -> bytes:
    """Pack a message as `batch.pack` does, even if a required field is missing, and spoil some of its texts."""
    encoded = found.SerializePartialToString()
    if random.random() < 0.05:
        encoded = mutations.spoiled(encoded, random)
    return len(encoded).to_bytes(4, "big") + encoded + value


def sends_of(data: bytes) -> list[bytes]:
    """Return the frames of an input as SEND frames of producer 0."""
    made: list[bytes] = []
    for head, entry in cut(data)[0][:MOST]:
        base = pb.BaseCommand()
        with suppress(DecodeError):
            base.ParseFromString(head)
        send = base.send
        send.SetInParent()
        base.type = Type.SEND
        send.producer_id = 0
        if not send.HasField("sequence_id"):
            send.sequence_id = len(made)
        made.append(frame(base.SerializePartialToString(), entry))
    return made


async def play(sends: Sequence[bytes]) -> None:
    async with in_process(CONFIG) as inside, inside.client() as client, trio.open_nursery() as nursery:
        bed, rest = inside.bed, rest_of(inside.bed)
        for number, kind in enumerate(KINDS):
            wire = await bed.connect()
            await wire.subscribe(name=f"s{kind}", type=kind, consumer_id=number)
            nursery.start_soon(take, wire, number)
        before = await bed.connect()
        await before.subscribe(name="last", initialPosition=pb.CommandSubscribe.Earliest)
        await before.aclose()
        for some in (sends[: len(sends) // 2], sends[len(sends) // 2 :]):
            await publish(bed, some)
        await looked_at(rest)
        await read_by(client)
        await compacted(bed, rest)
        await read_by(client, read_compacted=True)
        await rest.call("PUT", f"{TOPICS}/t/unload")
        await looked_at(rest)
        await trio.sleep(1)
        late = await bed.connect()
        await late.subscribe(name="last", type=pb.CommandSubscribe.Shared, consumer_id=7)
        nursery.start_soon(take, late, 7)
        await trio.sleep(1)
        other = await bed.connect()
        await other.producer("persistent://public/default/other")
        await other.publish(plain(b"still here"))
        nursery.cancel_scope.cancel()


async def publish(bed: Bed, sends: Sequence[bytes]) -> None:
    """Publish all entries, on a new connection whenever the broker has closed the last one."""
    left = list(sends)
    while left:
        sender = await bed.connect()
        await sender.producer()
        while left and not sender.ended:
            with suppress(trio.BrokenResourceError):
                await sender.write(left[0])
            del left[0]
            await sender.rest(0.1)
        await sender.aclose()


async def take(wire: Wire, consumer_id: int) -> None:
    """Receive messages in groups of four: ask to redeliver one, acknowledge batch index 0 of one, acknowledge two."""
    await wire.flow(10, consumer_id)
    decoder, seen = FrameDecoder(), 0
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while data := await wire.stream.receive_some(1 << 20):
            for head, _ in decoder.feed(bytes(data)):
                command = pb.BaseCommand.FromString(head)
                if command.type == Type.PING:
                    await wire.send(Type.PONG)
                if command.type != Type.MESSAGE:
                    continue
                seen += 1
                where = command.message.message_id
                if seen % 4 == 1:
                    again = Type.REDELIVER_UNACKNOWLEDGED_MESSAGES
                    await wire.send(again, consumer_id=consumer_id, message_ids=[where])
                elif seen % 4 == 2:
                    some = pb.MessageIdData(ledgerId=where.ledgerId, entryId=where.entryId, ack_set=[-2])
                    await wire.send(Type.ACK, consumer_id=consumer_id, ack_type=0, message_id=[some], request_id=seen)
                else:
                    await wire.send(Type.ACK, consumer_id=consumer_id, ack_type=0, message_id=[where], request_id=seen)
                await wire.flow(1, consumer_id)


async def looked_at(rest: Rest) -> None:
    """Check that no REST request for the topic or for its entries fails with a server error."""
    urls = [
        f"{TOPICS}/t/stats?getPreciseBacklog=true",
        f"{TOPICS}/t/internalStats?metadata=true",
        f"{TOPICS}/t/lastMessageId",
    ]
    urls += [f"{TOPICS}/t/subscription/last/position/{number}" for number in range(1, MOST + 1)]
    urls += [f"{TOPICS}/t/examinemessage?initialPosition=earliest&messagePosition={number}" for number in (1, 5)]
    urls += [f"{TOPICS}/t/messageid/1", "/", f"{TOPICS}/t/backlogSize"]
    for url in urls:
        method = "PUT" if url.endswith("backlogSize") else "GET"
        answer = await rest.call(method, url, body=b'{"ledgerId":0,"entryId":0}' if method == "PUT" else b"")
        if answer.status >= 500:
            raise Finding(f"{answer.status} {url}", answer.body.decode())


async def compacted(bed: Bed, rest: Rest) -> None:
    answer = await rest.call("PUT", f"{TOPICS}/t/compaction")
    for _ in range(1000):
        await trio.sleep(0.1)
        await trio.to_thread.run_sync(time.sleep, 0.001)  # compaction takes large entries apart in a thread
        answer = await rest.call("GET", f"{TOPICS}/t/compaction")
        if b"RUNNING" not in answer.body:
            break
    if answer.status != 200 or b"SUCCESS" not in answer.body:
        raise Finding("compaction", answer.body.decode())
    reader = await bed.connect()
    await reader.subscribe(
        name="compacted", consumer_id=3, read_compacted=True, initialPosition=pb.CommandSubscribe.Earliest
    )
    await reader.flow(100, 3)
    await reader.send(Type.GET_LAST_MESSAGE_ID, consumer_id=3, request_id=999)
    await reader.rest(1)
    await reader.aclose()


async def read_by(client: Client, *, read_compacted: bool = False) -> None:
    """Read and acknowledge all messages with our client."""
    name, kind = ("x", ConsumerType.Exclusive) if read_compacted else ("y", ConsumerType.Shared)
    async with client.subscribe(
        TOPIC, name, consumer_type=kind, initial_position=InitialPosition.Earliest, read_compacted=read_compacted
    ) as consumer:
        with anyio.move_on_after(2):
            while True:
                try:
                    message = await consumer.receive()
                except PulsarError:
                    await anyio.sleep(0.1)
                    continue
                message.data(), message.properties(), message.partition_key(), message.ordering_key()
                str(message), message.event_timestamp(), message.schema_version()
                await consumer.acknowledge(message)
