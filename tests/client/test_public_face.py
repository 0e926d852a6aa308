"""The public face of the client: its members, the inferred types, its errors, and rules of its source."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, assert_type

import pytest
from trio.testing import MockClock

import pulsarium.client
from pulsarium.client import (
    AvroSchema,
    CheckpointConsumer,
    Client,
    Consumer,
    FixError,
    GiveUpError,
    Int32Schema,
    JsonSchema,
    Message,
    MessageId,
    NamespaceStreamConsumer,
    Producer,
    PulsarError,
    QueueConsumer,
    RawReader,
    Reader,
    Receipt,
    RetryError,
    ScalableMessage,
    ScalableProducer,
    ScalableTopics,
    StreamConsumer,
    StringSchema,
    TableView,
    TimestampSchema,
    Transaction,
    errors,
)
from pulsarium.client.admin import errors as admin_errors
from pulsarium.client.admin.errors import AdminError
from pulsarium.client.consumer.options import InitialPosition
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.consumer.started import started

SHOWN: Mapping[type, str] = {
    Client: "aclose admin begin_transaction create_producer create_raw_reader create_reader create_table_view"
    " get_schema get_topic_partitions get_topics scalable subscribe transaction",
    Producer: "abandon aclose flush is_connected last_sequence_id producer_name send send_nowait statistics submit"
    " topic topic_epoch",
    Consumer: "acknowledge acknowledge_cumulative acknowledge_index aclose batch_receive consumer_name"
    " get_last_message_ids has_reached_end_of_topic is_active negative_acknowledge pause receive reconsume_later"
    " redeliver_unacknowledged_messages resume seek seek_to_index statistics subscription_name suspended_topics topic"
    " unsubscribe",
    ScalableTopics: "begin_transaction create_checkpoint_consumer create_producer subscribe_namespace subscribe_queue"
    " subscribe_stream transaction",
    ScalableProducer: "abandon aclose flush last_sequence_id producer_name send statistics submit topic",
    QueueConsumer: "acknowledge negative_acknowledge subscription_name",
    StreamConsumer: "acknowledge_cumulative aclose consumer_name segment_ids subscription_name",
    NamespaceStreamConsumer: "acknowledge_cumulative aclose receive subscription_name topics",
    CheckpointConsumer: "aclose checkpoint",
    ScalableMessage: "of segment_id",
    Reader: "aclose get_last_message_ids has_message_available read_next seek seek_to_index topic",
    RawReader: "aclose get_last_message_ids has_message_available read_next seek topic",
    TableView: "for_each for_each_and_listen listen refresh topic",
    Transaction: "abort commit id state",
    Receipt: "is_done result then wait",
    Message: "broker_metadata broker_publish_time data entry_metadata event_timestamp has_base64_encoded_key"
    " has_null_value has_partition_key index key_bytes message_id ordering_key partition_key producer_name properties"
    " publish_timestamp redelivery_count schema_version sequence_id topic_name value",
}


@pytest.mark.parametrize(("shown", "names"), SHOWN.items())
def test_a_class_shows_only_what_applications_use(shown: type, names: str) -> None:
    assert {name for name in vars(shown) if not name.startswith("_")} == set(names.split())


@pytest.mark.parametrize("shown", SHOWN)
def test_facts_of_an_object_are_methods(shown: type) -> None:
    attributes = {name for name, member in vars(shown).items() if isinstance(member, property)}
    attributes |= {
        node.attr
        for node in ast.walk(ast.parse(inspect.getsource(shown)))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }
    assert {name for name in attributes if not name.startswith("_")} == (
        {"admin", "scalable"} if shown is Client else set()
    )


# ---- Rules of the client's source: only `self` gets callbacks, and each async method has a test as a checkpoint


FILES = sorted(Path(pulsarium.client.__file__).parent.rglob("*.py"))

#: Async methods that always wait for the broker.
ELSEWHERE = {"__aenter__", "__aexit__"}


def assigned_elsewhere(tree: ast.AST) -> Iterator[str]:
    """Yield the names of attributes that a module assigns to objects other than `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) != "self":
            yield node.attr


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nobody_assigns_a_callback_of_another_object(path: Path) -> None:
    found = assigned_elsewhere(ast.parse(path.read_text()))
    assert [name for name in found if name.startswith(("on_", "_on_"))] == []


@pytest.mark.parametrize("kind", [Consumer, Producer, RawReader, Reader, Receipt])
def test_every_async_method_is_held_to_be_a_checkpoint(kind: type) -> None:
    """A new method needs a case in tests/client/test_checkpoints.py."""
    held = Path(__file__).with_name("test_checkpoints.py").read_text().replace("anext(", "__anext__")
    methods = {name for name, one in vars(kind).items() if inspect.iscoroutinefunction(one)} - ELSEWHERE
    shown = [name for name in methods if name.strip("_") == name or name == "__anext__"]
    assert [name for name in shown if not re.search(rf"\b{name}\b", held)] == []


# ---- Errors: each one is of one kind, and has a stable code of its own


KINDS = (RetryError, FixError, GiveUpError)
RAISED: set[type[PulsarError]] = {
    error
    for module in (errors, admin_errors)
    for error in vars(module).values()
    if isinstance(error, type) and issubclass(error, PulsarError)
} - {PulsarError, AdminError, *KINDS}


@pytest.mark.parametrize("error", sorted(RAISED, key=str))
def test_each_error_is_of_one_kind(error: type[PulsarError]) -> None:
    assert sum(issubclass(error, kind) for kind in KINDS) == 1


def test_no_part_of_the_client_raises_an_error_without_a_kind() -> None:
    for module in pkgutil.walk_packages(pulsarium.client.__path__, "pulsarium.client."):
        importlib.import_module(module.name)
    rest = {*PulsarError.__subclasses__(), *AdminError.__subclasses__()} - {*KINDS, AdminError}
    assert {error for error in rest if not issubclass(error, KINDS)} == set()
    assert PulsarError.code == "PulsarError"


def test_codes_are_pulsars_and_tell_errors_apart() -> None:
    assert {error.code for error in RAISED} >= set(pb.ServerError.keys())
    assert len({error.code for error in RAISED}) == len(RAISED)
    assert errors.error_of(pb.ServiceNotReady, "").code == "ServiceNotReady"
    assert errors.ProducerQueueIsFull.code == "ProducerQueueIsFull"


def test_transient_errors_are_retry_errors() -> None:
    assert all(issubclass(error, RetryError) for error in errors.TRANSIENT)
    assert not any(issubclass(error, RetryError) for error in errors.FATAL)


# ---- What a type checker infers: mypy checks these lines, and pytest runs them


@dataclass
class User:
    name: str
    age: int = 0


def test_schemas_know_the_types_of_their_values() -> None:
    definition: dict[str, Any] = {"type": "record", "name": "R", "fields": []}
    assert_type(AvroSchema(User), AvroSchema[User])
    assert_type(AvroSchema(definition), AvroSchema[dict[str, Any]])
    assert_type(JsonSchema(User).decode(b'{"name": ""}'), User)
    assert_type(JsonSchema('{"type": "record", "name": "R", "fields": []}').decode(b"{}"), dict[str, Any])
    assert_type(StringSchema().decode(b""), str)
    assert_type(Int32Schema().decode(bytes(4)), int)
    assert_type(TimestampSchema().decode(bytes(8)), datetime)


async def test_producers_consumers_and_readers_know_the_types_of_their_values(autojump_clock: MockClock) -> None:
    schema = AvroSchema(User)
    async with (
        started() as (_, client),
        client.create_producer("t", schema=schema) as producer,
        client.subscribe("t", "s", schema=schema, initial_position=InitialPosition.Earliest) as consumer,
        client.create_reader("t", MessageId.earliest, schema=schema) as reader,
        client.subscribe("t", "plain", initial_position=InitialPosition.Earliest) as plain,
    ):
        assert_type(producer, Producer[User])
        assert_type(consumer, Consumer[User])
        assert_type(reader, Reader[User])
        assert_type(plain, Consumer[bytes])
        await producer.send(User("Ada", 36))
        message = await consumer.receive()
        assert_type(message, Message[User])
        assert_type(message.value(), User)
        assert message.value() == (await reader.read_next()).value() == User("Ada", 36)
        value = (await plain.receive()).value()
        assert_type(value, bytes)
        assert value == schema.encode(User("Ada", 36))
