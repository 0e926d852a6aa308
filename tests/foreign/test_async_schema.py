"""Schemas of our client and of the official one: each client uses the schema that the other has registered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pulsar
import pytest
from pulsar import schema as official

from pulsarium.client import (
    AvroFloat,
    AvroInt,
    AvroSchema,
    BytesSchema,
    Client,
    InitialPosition,
    JsonSchema,
    Message,
    MessageId,
    StringSchema,
    connect,
)
from pulsarium.client.errors import IncompatibleSchema
from tests.client.both import on_both

from .broker_process import Address

Earliest = InitialPosition.Earliest


class Color(Enum):
    RED = 1
    BLUE = 2


class TheirHome(official.Record):  # type: ignore[misc]
    street = official.String()
    number = official.Integer()


TheirHome.__name__ = "Home"


class TheirPerson(official.Record):  # type: ignore[misc]
    name = official.String()
    age = official.Integer()
    wealth = official.Long(required=True)
    height = official.Double()
    weight = official.Float()
    is_here = official.Boolean(required=True)
    color = official.CustomEnum(Color)
    names = official.Array(official.String())
    counts = official.Map(official.Integer())
    home = TheirHome()


TheirPerson.__name__ = "Person"


@dataclass
class Home:
    street: str | None = None
    number: AvroInt | None = None


@dataclass
class Person:
    name: str | None
    age: AvroInt | None
    wealth: int
    height: float | None
    weight: AvroFloat | None
    is_here: bool
    color: Color | None
    names: list[str] | None
    counts: dict[str, AvroInt] | None
    home: Home | None = None


def fields(*, ours: bool) -> dict[str, Any]:
    """Return the fields of one person, for our class or the official client's."""
    home = Home if ours else TheirHome
    return {
        "name": "Ada Ä",
        "age": 36,
        "wealth": 2**40,
        "height": 1.65,
        "weight": 55.5,
        "is_here": True,
        "color": Color.BLUE,
        "names": ["Ada", "Lovelace"],
        "counts": {"a": 1},
        "home": home(street="x", number=3),
    }


def plain(person: Any) -> dict[str, Any]:
    """Return the fields of a person of either class."""
    values = {name: getattr(person, name) for name in fields(ours=True)}
    home = values["home"]
    if home is not None:
        values["home"] = {name: getattr(home, name) for name in ("street", "number")}
    return values


ADA = plain(Person(**fields(ours=True)))
NOBODY: dict[str, Any] = dict.fromkeys(fields(ours=True)) | {"wealth": 0, "is_here": False}
FORMS = pytest.mark.parametrize(
    ("ours", "theirs"),
    [(AvroSchema, official.AvroSchema), (JsonSchema, official.JsonSchema)],
    ids=["avro", "json"],
)


@pytest.fixture
def them(broker: Address) -> Iterator[pulsar.Client]:
    client = pulsar.Client(broker.service_url, operation_timeout_seconds=30)
    yield client
    client.close()


async def ours_of(client: Client, topic: str, schema: Any, count: int) -> list[Message[Any]]:
    async with client.create_reader(topic, MessageId.earliest, schema=schema) as reader:
        return [await reader.read_next() for _ in range(count)]


def theirs_of(them: pulsar.Client, topic: str, schema: Any, count: int) -> list[Any]:
    consumer = them.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest, schema=schema)
    found = [consumer.receive(30_000) for _ in range(count)]
    consumer.close()
    return found


@FORMS
@pytest.mark.parametrize("we_begin", [True, False])
@on_both
async def test_both_produce_and_consume_records_on_one_topic(
    broker: Address, them: pulsar.Client, topic: str, ours: Any, theirs: Any, we_begin: bool
) -> None:
    async def we(client: Client) -> None:
        async with client.create_producer(topic, schema=ours(Person)) as producer:
            await producer.send(Person(**fields(ours=True)))
            await producer.send(Person(**NOBODY))

    def they() -> None:
        producer = them.create_producer(topic, schema=theirs(TheirPerson))
        producer.send(TheirPerson(**fields(ours=False)))
        producer.close()

    async with connect(broker.service_url) as client:
        if we_begin:
            await we(client)
            they()
            expected = [ADA, NOBODY, ADA]
        else:
            they()
            await we(client)
            expected = [ADA, ADA, NOBODY]
        found = await ours_of(client, topic, ours(Person), 3)
        assert [plain(message.value()) for message in found] == expected
        read = theirs_of(them, topic, theirs(TheirPerson), 3)
        if ours is JsonSchema:  # the official client makes no inner record of JSON without one
            read = [message for message, person in zip(read, expected, strict=True) if person is not NOBODY]
            expected = [ADA, ADA]
        assert [plain(message.value()) for message in read] == expected
        definitions = [await ours_of(client, topic, ours(Person), 1), read]
        assert all(len(message.schema_version()) == 8 for some in definitions for message in some)
        kept = await client.get_schema(topic, found[0].schema_version())
        assert kept.type == ours(Person).info.type


@FORMS
@on_both
async def test_definitions_and_dicts(broker: Address, them: pulsar.Client, topic: str, ours: Any, theirs: Any) -> None:
    """The official client's own class supplies the definition."""
    definition = TheirHome.schema()
    async with connect(broker.service_url) as client:
        them.create_producer(topic, schema=theirs(TheirHome)).send(TheirHome(street="x", number=3))
        async with client.create_producer(topic, schema=ours(definition)) as producer:
            await producer.send({"street": None, "number": 4})
        found = await ours_of(client, topic, ours(definition), 2)
        assert [message.value() for message in found] == [{"street": "x", "number": 3}, {"street": None, "number": 4}]
        assert len({message.schema_version() for message in found}) == 1
        read = theirs_of(them, topic, theirs(TheirHome), 2)
        assert [(one.value().street, one.value().number) for one in read] == [("x", 3), (None, 4)]


@on_both
async def test_texts_and_bytes(broker: Address, them: pulsar.Client, topic: str) -> None:
    async with connect(broker.service_url) as client:
        them.create_producer(topic, schema=official.StringSchema()).send("grüße")
        async with client.create_producer(topic, schema=StringSchema()) as producer:
            await producer.send("zurück")
        found = await ours_of(client, topic, StringSchema(), 2)
        assert [message.value() for message in found] == ["grüße", "zurück"]
        found = await ours_of(client, topic, BytesSchema(), 2)
        assert [message.value() for message in found] == ["grüße".encode(), "zurück".encode()]
        read = theirs_of(them, topic, official.StringSchema(), 2)
        assert [message.value() for message in read] == ["grüße", "zurück"]


# ---- versions


@dataclass
class User:
    name: str
    gone: AvroInt = 1


@dataclass
class Newer:
    name: str
    email: str | None = None
    tags: str = "none"


Newer.__name__ = "User"


class TheirNewer(official.Record):  # type: ignore[misc]
    name = official.String(required=True)
    email = official.String(required_default=True)
    tags = official.String(required=True, default="none", required_default=True)


TheirNewer.__name__ = "User"


@on_both
async def test_python_and_our_client_read_all_versions_of_a_schema(
    broker: Address, them: pulsar.Client, topic: str
) -> None:
    """A reader of each version reads all messages, under FULL compatibility, which is the default of brokers."""
    async with connect(broker.service_url) as client:
        async with client.create_producer(topic, schema=AvroSchema(User)) as producer:
            await producer.send(User("a", 7))
        async with client.create_producer(topic, schema=AvroSchema(Newer)) as newer:
            await newer.send(Newer("b", "b@x", "t"))
        them.create_producer(topic, schema=official.AvroSchema(TheirNewer)).send(TheirNewer(name="c", email="c@x"))
        found = await ours_of(client, topic, AvroSchema(Newer), 3)
        assert [one.value() for one in found] == [Newer("a"), Newer("b", "b@x", "t"), Newer("c", "c@x", "none")]
        assert found[0].schema_version() != found[1].schema_version()
        found = await ours_of(client, topic, AvroSchema(User), 3)
        assert [one.value() for one in found] == [User("a", 7), User("b"), User("c")]
        read = [one.value() for one in theirs_of(them, topic, official.AvroSchema(TheirNewer), 3)]
        assert [(one.name, one.email, one.tags) for one in read] == [
            ("a", None, "none"), ("b", "b@x", "t"), ("c", "c@x", "none")
        ]  # fmt: skip


@dataclass
class Other:
    name: AvroInt


Other.__name__ = "User"


@on_both
async def test_a_schema_that_does_not_fit(broker: Address, topic: str) -> None:
    async with connect(broker.service_url) as client, client.create_producer(topic, schema=AvroSchema(User)):
        with pytest.raises(IncompatibleSchema):
            await client.create_producer(topic, schema=AvroSchema(Other)).__aenter__()
        with pytest.raises(IncompatibleSchema):
            await client.subscribe(topic, "s", schema=StringSchema()).__aenter__()
