"""Messages of other schema versions: the client asks the broker once for each version, before it delivers a message."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import pytest
import trio
from trio.testing import MockClock

from pulsarium.client.client import Client
from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.consumer.options import InitialPosition
from pulsarium.client.consumer.policies import ConsumerBatchReceivePolicy
from pulsarium.client.errors import IncompatibleSchema, InvalidMessage, InvalidTopicName, Timeout, TopicNotFound
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.producer import Producer
from pulsarium.client.schema import versions
from pulsarium.client.schema.avro_schema import AvroSchema
from pulsarium.client.schema.primitives import StringSchema
from pulsarium.client.schema.schema import SchemaInfo
from pulsarium.client.schema.structured import JsonSchema
from pulsarium.client.schema.versions import ASK_AGAIN, Versions
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import plain
from tests.client.consumer.started import nothing_more, received, started
from tests.client.hostile.clocks import on_both
from tests.client.hostile.played import error_answer, playing
from tests.client.peer import Type
from tests.client.producer.stage import answer_producer, producing

Earliest = InitialPosition.Earliest
FIRST, SECOND = bytes(8), bytes(7) + b"\1"


@dataclass
class Old:
    name: str
    gone: int = 0


@dataclass
class New:
    name: str
    added: str = "new"


class Asked:
    """A source of schemas that records the requested versions. A test may replace its answer."""

    def __init__(self) -> None:
        self.versions: list[bytes | None] = []
        self.first: Callable[[], Any] | None = None
        self._fetch = versions.fetch

    async def fetch(self, brokers: Brokers, topic: str, version: bytes | None = None) -> SchemaInfo:
        self.versions.append(version)
        if self.first is not None:
            await self.first()
        return await self._fetch(brokers, topic, version)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked = Asked()
    monkeypatch.setattr(versions, "fetch", asked.fetch)
    return asked


async def publish(client: Client, *values: Old | New) -> None:
    for value in values:
        async with client.create_producer("t", schema=AvroSchema(type(value))) as producer:
            await producer.send(value)


async def test_each_version_is_asked_for_once(autojump_clock: MockClock, asked: Asked) -> None:
    async with started() as (_, client):
        await publish(client, Old("a", 1), New("b"), Old("c", 2), New("d", "more"))
        async with client.subscribe("t", "s", schema=AvroSchema(New), initial_position=Earliest) as consumer:
            messages = await received(consumer, 4)
        assert [message.value() for message in messages] == [New("a"), New("b"), New("c"), New("d", "more")]
        assert [message.schema_version() for message in messages] == [FIRST, SECOND, FIRST, SECOND]
        assert asked.versions == [FIRST, SECOND]
        async with client.create_reader("t", MessageId.earliest, schema=AvroSchema(Old)) as reader:
            found = [await reader.read_next() for _ in range(3) if await reader.has_message_available()]
        assert [message.value() for message in found] == [Old("a", 1), Old("b"), Old("c", 2)]
        assert asked.versions == [FIRST, SECOND]


async def test_each_topic_has_versions_of_its_own(autojump_clock: MockClock, asked: Asked) -> None:
    async with started() as (_, client):
        for topic, value in (("t", Old("a", 1)), ("u", New("b", "more"))):
            async with client.create_producer(topic, schema=AvroSchema(type(value))) as producer:
                await producer.send(value)
        async with client.subscribe(["t", "u"], "s", schema=AvroSchema(New), initial_position=Earliest) as consumer:
            messages = await received(consumer, 2)
        assert {message.schema_version() for message in messages} == {FIRST}
        assert sorted((message.value() for message in messages), key=lambda each: each.name) == [
            New("a"),
            New("b", "more"),
        ]
        assert asked.versions == [FIRST, FIRST]


async def test_batch_receive_asks_for_each_version_once(autojump_clock: MockClock, asked: Asked) -> None:
    policy = ConsumerBatchReceivePolicy(max_num_message=3, timeout=1)
    async with (
        started() as (_, client),
        client.subscribe("t", "s", schema=AvroSchema(New), batch_receive_policy=policy) as consumer,
    ):
        await publish(client, Old("a"), Old("b"), New("c"))
        values: list[New] = []
        while len(values) < 3:
            values += [message.value() for message in await consumer.batch_receive()]
        assert values == [New("a"), New("b"), New("c")]
        assert len(asked.versions) == 2


@pytest.mark.parametrize(
    ("schema", "written", "value"),
    [
        (None, AvroSchema(New), New("a")),
        (StringSchema(), StringSchema(), "a"),
        (JsonSchema(New), JsonSchema(New), New("a")),
    ],
)
async def test_others_do_not_ask(
    autojump_clock: MockClock, asked: Asked, schema: Any, written: Any, value: Any
) -> None:
    async with started() as (_, client):
        options = {} if schema is None else {"schema": schema}
        async with client.subscribe("t", "s", **options) as consumer:
            async with client.create_producer("t", schema=written) as producer:
                await producer.send(value)
            assert len((await received(consumer, 1))[0].schema_version()) == 8
    assert asked.versions == []


async def test_cancelling_loses_no_version_of_a_schema(autojump_clock: MockClock, asked: Asked) -> None:
    async with started() as (_, client), client.subscribe("t", "s", schema=AvroSchema(New)) as consumer:
        await publish(client, Old("a"), Old("b"))
        asked.first = trio.sleep_forever
        for _ in range(3):
            with anyio.move_on_after(5) as scope:
                await consumer.receive()
            assert scope.cancelled_caught
        asked.first = None
        assert [message.value() for message in await received(consumer, 2)] == [New("a"), New("b")]
        await nothing_more(consumer)


async def test_several_who_wait_for_one_version_get_their_messages(autojump_clock: MockClock, asked: Asked) -> None:
    found: list[New] = []

    async def receive() -> None:
        found.append((await consumer.receive()).value())

    async with started() as (_, client), client.subscribe("t", "s", schema=AvroSchema(New)) as consumer:
        asked.first = partial(trio.sleep, 1)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(receive)
            await publish(client, Old("a"), Old("b"), New("c"))
    assert sorted(value.name for value in found) == ["a", "b", "c"]


async def test_a_version_that_cannot_be_had(autojump_clock: MockClock, asked: Asked) -> None:
    """The application receives the message without its value. The client asks the broker again only later."""

    async def fail() -> None:
        raise TopicNotFound("no such schema")

    async with (
        started() as (_, client),
        client.subscribe("t", "other", schema=AvroSchema(New), initial_position=Earliest) as consumer,
        client.subscribe("t", "s") as first,
    ):
        await publish(client, *[Old("a")] * 3)
        (message,) = await received(first, 1)
        asked.first = fail
        for _ in range(2):
            (message,) = await received(consumer, 1)
            assert message.data() == AvroSchema(Old).encode(Old("a"))
            for _ in range(2):
                with pytest.raises(InvalidMessage, match="schema of the message is unknown: no such schema"):
                    message.value()
        assert asked.versions == [message.schema_version()]
        asked.first = None
        await trio.sleep(ASK_AGAIN + 1)
        assert (await received(consumer, 1))[0].value() == New("a")


async def test_a_broker_that_does_not_answer(autojump_clock: MockClock, asked: Asked) -> None:

    async def fail() -> None:
        await trio.sleep(1)
        raise Timeout("no answer")

    async with (
        started() as (inside, _),
        inside.client(operation_timeout=5) as client,
        client.subscribe("t", "s", schema=AvroSchema(New)) as consumer,
    ):
        await publish(client, Old("a"))
        asked.first = fail
        with trio.fail_after(10):
            message = await consumer.receive()
        assert len(asked.versions) > 1
        with pytest.raises(InvalidMessage, match="no answer"):
            message.value()


@pytest.mark.parametrize("version", [b"\0", bytes(9)])
async def test_an_invalid_schema_version_is_not_asked_for(
    autojump_clock: MockClock, asked: Asked, version: bytes
) -> None:
    async with started() as (inside, client), client.subscribe("t", "s", schema=AvroSchema(New)) as consumer:
        wire = await inside.wire()
        await wire.publish(plain(b"", schema_version=version), plain(AvroSchema(New).encode(New("a"))))
        bad, good = await received(consumer, 2)
        with pytest.raises(InvalidMessage, match="is no schema version"):
            bad.value()
        assert good.value() == New("a")  # without a version, the consumer's own schema applies
    assert asked.versions == []


async def test_the_cache_of_schemas_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fetch(brokers: Brokers, topic: str, version: bytes | None = None) -> SchemaInfo:
        return SchemaInfo(pb.Schema.Avro, bytes(400))

    monkeypatch.setattr(versions, "fetch", fetch)
    monkeypatch.setattr(versions, "MOST_SCHEMAS", 4)
    monkeypatch.setattr(versions, "MOST_BYTES", 1000)
    async with started() as (_, client):
        known = Versions(client._core.brokers)
        for number in range(12):
            if number == 10:
                assert len(known._kept) == 2
                monkeypatch.setattr(versions, "MOST_BYTES", 100)
            metadata = pb.MessageMetadata(schema_version=number.to_bytes(8, "big"))
            message: Message[Any] = Message("t", MessageId(1, 1), metadata, None, b"")
            await known.find(message)
            assert known.knows(message)
        assert len(known._kept) == 1


async def test_the_schema_of_a_topic(autojump_clock: MockClock) -> None:
    async with started() as (_, client):
        await publish(client, Old("a"), New("b"))
        old, new = AvroSchema(Old).info, AvroSchema(New).info
        for version, schema in ((0, old), (FIRST, old), (1, new), (SECOND, new), (None, new)):
            found = await client.get_schema("t", version)
            assert (found.type, found.data) == (schema.type, schema.data)
        for topic, wrong in (("t", 2), ("t", -1), ("nowhere", None)):
            with pytest.raises(TopicNotFound):
                await client.get_schema(topic, wrong)
        with pytest.raises(InvalidTopicName):
            await client.get_schema("://")


# ---- Commands on the wire


@on_both
async def test_a_producer_tells_its_schema_and_marks_what_it_sends() -> None:
    async with producing({"schema_version": SECOND}, schema=StringSchema()) as stage:
        producer: Producer[Any] = stage.producer
        for batch in ("ab", "c"):
            for text in batch:
                producer.send_nowait(text)
            stage.producer._send_batches()
            _, metadata, _ = await stage.sent()
            assert metadata.schema_version == SECOND
        await stage.peer.say(Type.CLOSE_PRODUCER, producer_id=0, request_id=2**64 - 1)
        await stage.peer.lead_here_again()
        asked = await answer_producer(stage.peer)
        assert asked.schema.type == pb.Schema.String


@on_both
async def test_without_a_schema_nothing_is_said() -> None:
    async with producing({"schema_version": SECOND}) as stage:
        stage.producer.send_nowait(b"")
        stage.producer._send_batches()
        _, metadata, _ = await stage.sent()
        assert not metadata.HasField("schema_version")
        await stage.peer.say(Type.CLOSE_PRODUCER, producer_id=0, request_id=2**64 - 1)
        await stage.peer.lead_here_again()
        assert not (await answer_producer(stage.peer)).HasField("schema")


@on_both
async def test_a_refused_schema_is_raised_at_once_and_not_tried_again() -> None:
    async with playing() as (played, client):
        openings: list[tuple[int, AbstractAsyncContextManager[object]]] = [
            (Type.PRODUCER, client.create_producer("t", schema=AvroSchema(New))),
            (Type.SUBSCRIBE, client.subscribe("t", "s", schema=AvroSchema(New))),
        ]
        for kind, opening in openings:
            played.on[kind] = error_answer(pb.IncompatibleSchema, "no way")
            with pytest.raises(IncompatibleSchema, match="no way"):
                await opening.__aenter__()
            assert (await played.sent(kind)).schema.schema_data == AvroSchema(New).info.data
            assert played.count(kind) == 1
