"""Exchange of messages between our client and the official Java and Python clients, in every way of sending.

In each test both clients write to one topic, and both read all messages. They show the same fields of each message.

Our own client over sockets, under both event loops, with the official client as a reader.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator
from typing import Any

import pulsar
import pytest
from anyio.to_thread import run_sync

from pulsarium.client import CompressionType, InitialPosition, Message, MessageId, connect
from pulsarium.client.errors import ConnectError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.both import FIRST_FAILURE, on_both, run_on
from tests.client.key_files import KeyFiles, key_files
from tests.foreign.java_client import java_program

from .broker_process import Address, BrokerProcess, is_pulsarium
from .conftest import Launch
from .interop import BATCHED, CHUNKED, SENDING, Java, Peer, Python, Sent, Way, messages_of, publish, read, told
from .interop_kinds import KINDS, MIXED, VERSIONED, NewerUser, User
from .lines import LineProgram
from .pairwise import pairwise

BACKENDS = ("trio", "asyncio")
MAX_MESSAGE_SIZE = 100_000 if is_pulsarium() else 5 * 1024 * 1024
COMPRESSIONS = tuple(pb.CompressionType.Name(one.value) for one in CompressionType)


def combinations(*encryptions: str) -> list[Any]:
    """Return parameters with every pair of schema, compression, sending, encryption, loop, and first writer."""
    rows = pairwise(MIXED, COMPRESSIONS, SENDING, encryptions, BACKENDS, ("ours", "theirs"))
    return [pytest.param(*row, id="-".join(map(str, row))) for row in rows]


mixed = pytest.mark.parametrize(
    ("kind", "compression", "sending", "encryption", "backend", "first"), combinations("none", "rsa", "ec")
)
mixed_without_ec = pytest.mark.parametrize(
    ("kind", "compression", "sending", "encryption", "backend", "first"), combinations("none", "rsa")
)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KeyFiles]:
    return {kind: key_files(tmp_path_factory.mktemp(kind), kind) for kind in ("rsa", "ec")}


@pytest.fixture(scope="module")
def program(broker: Address, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineProgram]:
    program = java_program(broker, tmp_path_factory.mktemp("java"))
    yield program
    program.close()


@pytest.fixture(scope="module")
def java(program: LineProgram) -> Java:
    return Java(program)


@pytest.fixture(scope="module")
def little(broker: Address, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Start a broker with a small limit of entries, unless the environment names a real broker.

    The official Python client makes chunks only of messages above this limit.
    """
    if not is_pulsarium():
        yield broker
        return
    process = BrokerProcess(tmp_path_factory.mktemp("little"), ("--set", f"maxMessageSize={MAX_MESSAGE_SIZE}"))
    yield process.address
    assert process.stop() == 0


@pytest.fixture
def python(little: Address) -> Iterator[Python]:
    """Connect for each test: the client keeps one limit of entries for a whole process, that of its last connection."""
    client = pulsar.Client(
        little.service_url, operation_timeout_seconds=30, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn)
    )
    yield Python(client, MAX_MESSAGE_SIZE)
    client.close()


async def exchange(broker: Address, peer: Peer, topic: str, way: Way, *, we_begin: bool) -> list[Message[Any]]:
    """Publish and read with both clients, compare what they read, and return the messages of our client."""
    sent: list[tuple[int, Sent]] = []
    ids: list[MessageId] = []
    async with connect(broker.service_url) as client:
        for ours in (we_begin, not we_begin):
            if ours:
                messages = messages_of(way, peer.large)
                ids += await publish(client, topic, way, messages, peer.chunk_size)
            else:
                messages = peer.messages(way)
                ids += await run_sync(peer.publish, topic, way, messages)
            sent += enumerate(messages)
        found = await read(client, topic, way, len(ids))
        theirs = await run_sync(peer.read, topic, way, len(ids))
    assert [(message.message_id(), message.message_id().first_chunk) for message in found] == [
        (one, one.first_chunk) for one in ids
    ]
    tellings = [told(message) for message in found]
    for telling, (number, message) in zip(tellings, sent, strict=True):
        expected = {
            "value": message.value,
            **({} if way.schema.schema.separates_key else {"key": message.key}),
            "ordering_key": message.ordering_key,
            "event_time": message.event_time,
            "properties": dict(message.properties),
            "sequence_id": number,
        }
        assert {name: telling[name] for name in expected} == expected
    assert_same(theirs, tellings, way)
    assert len({telling["producer"] for telling in tellings}) == 2
    assert {len(telling["schema_version"]) for telling in tellings} == {0 if way.kind == "bytes" else 16}
    return found


def assert_same(theirs: list[dict[str, Any]], ours: list[dict[str, Any]], way: Way) -> None:
    """Assert that both clients show the same, in the fields that the other client shows."""
    plain = [
        telling | {"value": None if telling["value"] is None else way.schema.plain(telling["value"])}
        for telling in ours
    ]
    assert theirs == [{name: telling[name] for name in other} for telling, other in zip(plain, theirs, strict=True)]


def assert_sent(messages: list[Message[Any]], way: Way) -> None:
    """Assert that both clients sent the messages in the given way."""
    kinds = {pb.CompressionType.Name(message.entry_metadata().compression) for message in messages if message.data()}
    assert kinds == {way.compression}
    assert {bool(message.entry_metadata().encryption_keys) for message in messages} == {way.keys is not None}
    assert {message.message_id().batch_index >= 0 for message in messages} == {way.sending == BATCHED}
    chunks = [len(message.message_id().entries) > 1 for message in messages]
    assert chunks.count(True) == (2 if way.sending == CHUNKED else 0)


async def exchange_mixed(broker: Address, peer: Peer, topic: str, way: Way, first: str) -> None:
    messages = await exchange(broker, peer, topic, way, we_begin=first == "ours")
    assert_sent(messages, way)


@pytest.mark.req("B-28", "B-43", "S429-27")
@mixed
def test_java_and_our_client_understand_each_other(
    broker: Address, java: Java, keys: dict[str, KeyFiles], topic: str,
    kind: str, compression: str, sending: str, encryption: str, backend: str, first: str,
) -> None:  # fmt: skip
    way = Way(kind, compression, sending, keys.get(encryption))
    run_on(backend, exchange_mixed, broker, java, topic, way, first)


@pytest.mark.req("B-28", "B-43", "S429-27")
@mixed_without_ec
def test_python_and_our_client_understand_each_other(
    little: Address, python: Python, keys: dict[str, KeyFiles],
    kind: str, compression: str, sending: str, encryption: str, backend: str, first: str,
) -> None:  # fmt: skip
    way = Way(kind, compression, sending, keys.get(encryption))
    run_on(backend, exchange_mixed, little, python, f"persistent://public/default/{uuid.uuid4().hex}", way, first)


@pytest.mark.heavy
@pytest.mark.req("B-28")
@on_both
async def test_chunks_as_large_as_entries_may_be(broker: Address, program: LineProgram, topic: str) -> None:
    way = Way("bytes", sending=CHUNKED)
    await exchange_mixed(broker, Java(program, large=5_000_000, chunk_size=None), topic, way, "ours")


@pytest.mark.req("B-30")
@pytest.mark.parametrize(("backend", "sending"), [("trio", "single"), ("asyncio", BATCHED)])
@pytest.mark.parametrize("kind", [name for name in KINDS if name not in (*MIXED, *VERSIONED, "json-moment")])
def test_schemas_of_java(broker: Address, java: Java, topic: str, kind: str, backend: str, sending: str) -> None:
    """The official Python client has none of these schemas."""
    run_on(backend, exchange_mixed, broker, java, topic, Way(kind, sending=sending), "ours")


@pytest.mark.req("B-30")
@on_both
async def test_moments_that_java_writes_in_json(broker: Address, java: Java, topic: str) -> None:
    way = Way("json-moment")
    messages = messages_of(way, 0)[:-1]
    await run_sync(java.publish, topic, way, messages)
    async with connect(broker.service_url) as client:
        found = await read(client, topic, way, len(messages))
    assert [message.value() for message in found] == [message.value for message in messages]


def as_version(user: User | None, version: type[User]) -> User | None:
    """Convert a user to a version of the class. Fields that the user does not have become None."""
    names = [field.name for field in dataclasses.fields(version)]
    values: dict[str, Any] = {name: getattr(user, name, None) for name in names}
    return None if user is None else version(**values)


@pytest.mark.req("B-30")
@pytest.mark.parametrize("form", ["avro", "json"])
@pytest.mark.parametrize("we_write", [True, False])
@on_both
async def test_java_and_our_client_read_both_versions_of_a_schema(
    broker: Address, java: Java, topic: str, form: str, we_write: bool
) -> None:
    """A reader with either version reads the messages of both."""
    older, newer = Way(f"{form}-user-1"), Way(f"{form}-user-2")
    sent: list[User | None] = []
    async with connect(broker.service_url) as client:
        for way in (older, newer):
            messages = messages_of(way, 0)
            if we_write:
                await publish(client, topic, way, messages, None)
            else:
                await run_sync(java.publish, topic, way, messages)
            sent += [message.value for message in messages]
        for way, version in ((older, User), (newer, NewerUser)):
            ours = await read(client, topic, way, len(sent))
            tellings = [told(message) for message in ours]
            assert [telling["value"] for telling in tellings] == [as_version(one, version) for one in sent]
            assert len({telling["schema_version"] for telling in tellings}) == 2
            assert_same(await run_sync(java.read, topic, way, len(sent)), tellings, way)


NAME = "persistent://public/default/t"
CONTENTS = [b"%d " % n * 300 for n in range(20)]


@pytest.mark.parametrize("batching", [False, True], ids=["plain", "batched"])
@pytest.mark.parametrize("compression", CompressionType)
@on_both
async def test_the_official_client_reads_what_we_send(
    broker: Address, official: pulsar.Client, topic: str, compression: CompressionType, batching: bool
) -> None:
    async with connect(broker.service_url) as client:
        options = {"compression_type": compression, "batching_enabled": batching}
        async with client.create_producer(topic, **options) as producer:  # type: ignore[arg-type]
            receipts = [
                producer.send_nowait(content, partition_key="k", properties={"a": "ä"}, event_timestamp=5)
                for content in CONTENTS
            ]
            ids = [await receipt.wait() for receipt in receipts]
    consumer = official.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
    messages = [consumer.receive(30_000) for _ in CONTENTS]
    assert [message.data() for message in messages] == CONTENTS
    assert {(m.partition_key(), m.properties()["a"], m.event_timestamp()) for m in messages} == {("k", "ä", 5)}
    assert {message.producer_name() for message in messages} == {producer.producer_name()}
    found = [message.message_id() for message in messages]
    assert [(one.ledger_id(), one.entry_id(), one.batch_index()) for one in found] == [
        (one.ledger_id, one.entry_id, one.batch_index) for one in ids
    ]


@on_both
async def test_a_broker_that_is_killed_and_comes_back(launch: Launch, data: str) -> None:
    """Messages with a receipt survive. The client sends the others again, in order."""
    process = launch("--data", data)
    contents = [b"%d" % n for n in range(300)]
    async with connect(process.address.service_url) as client:
        async with client.create_producer(NAME, batching_max_messages=10) as producer:
            receipts = [producer.send_nowait(content) for content in contents[:100]]
            await producer.flush()
            receipts += [producer.send_nowait(content) for content in contents[100:200]]
            process.kill()
            receipts += [producer.send_nowait(content) for content in contents[200:]]
            launch("--data", data, port=process.address.port, http_port=process.address.http_port)
            ids = [await receipt.wait() for receipt in receipts]
        assert ids == sorted(ids)
        first: dict[bytes, None] = {}
        async with client.subscribe(NAME, "s", initial_position=InitialPosition.Earliest) as consumer:
            while len(first) < len(contents):
                first.setdefault((await consumer.receive()).data())
        assert list(first) == contents


@on_both
async def test_our_client_says_that_nobody_listens(launch: Launch) -> None:
    process = launch()
    process.kill()
    address = process.address
    with pytest.raises(ConnectError, match=str(address.port)):
        async with connect(address.service_url, **FIRST_FAILURE) as client, client.create_producer(NAME):
            pass
