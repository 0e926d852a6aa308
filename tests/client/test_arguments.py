"""Tests that a method's signature and help show what its options take, and that it refuses other options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, assert_type

import pytest

from pulsarium.client import (
    Client,
    Consumer,
    ConsumerInterceptor,
    Producer,
    ProducerInterceptor,
    QueueConsumer,
    Reader,
    ScalableProducer,
    ScalableTopics,
    StringSchema,
    connect,
)
from pulsarium.client.arguments import texts_of
from pulsarium.client.connection.settings import ClientOptions
from pulsarium.client.consumer.options import ConsumerOptions, ReaderOptions, TableViewOptions
from pulsarium.client.consumer.raw_reader import RawReaderOptions
from pulsarium.client.producer.options import ProducerOptions
from pulsarium.client.transaction.transaction import TransactionOptions

METHODS: Mapping[Callable[..., Any], type] = {
    connect: ClientOptions,
    Client.create_producer: ProducerOptions,
    Client.subscribe: ConsumerOptions,
    Client.create_reader: ReaderOptions,
    Client.create_raw_reader: RawReaderOptions,
    Client.create_table_view: TableViewOptions,
    Client.transaction: TransactionOptions,
    Client.begin_transaction: TransactionOptions,
}
OF_NO_USE_TO_A_RAW_READER = {
    "auto_ack_oldest_chunked_message_on_queue_full",
    "crypto_failure_action",
    "crypto_key_reader",
    "expire_time_of_incomplete_chunked_message",
    "max_pending_chunked_message",
    "message_payload_processor",
    "schema",
}

# An interceptor knows its consumer or producer, and so the options below these know it by a protocol.
BY_A_PROTOCOL = {
    "Sequence[InterceptsConsumer]": "Sequence[ConsumerInterceptor]",
    "Sequence[InterceptsProducer[T]]": "Sequence[ProducerInterceptor[T]]",
}


@pytest.mark.parametrize(("method", "options"), METHODS.items())
def test_a_signature_says_what_the_options_take(method: Callable[..., Any], options: type) -> None:
    parameters = {name: one for name, one in inspect.signature(method).parameters.items() if name != "self"}
    taken = {one.name: one for one in fields(options)}
    left_out = OF_NO_USE_TO_A_RAW_READER if options is RawReaderOptions else set()
    assert parameters.keys() == taken.keys() - left_out
    for name, one in parameters.items():
        assert one.annotation == BY_A_PROTOCOL.get(str(taken[name].type), taken[name].type), name
        assert one.default == default_of(taken[name]), name
        assert one.kind is (one.KEYWORD_ONLY if taken[name].kw_only else one.POSITIONAL_OR_KEYWORD), name


SUBSETS: Mapping[Callable[..., Any], type] = {
    ScalableTopics.create_producer: ProducerOptions,
    ScalableTopics.subscribe_queue: ConsumerOptions,
    ScalableTopics.subscribe_stream: ConsumerOptions,
    ScalableTopics.subscribe_namespace: ConsumerOptions,
    ScalableTopics.create_checkpoint_consumer: ConsumerOptions,
}


@pytest.mark.parametrize(("method", "options"), SUBSETS.items())
def test_a_scalable_topic_takes_options_as_other_topics_do(method: Callable[..., Any], options: type) -> None:
    taken = {one.name: one for one in fields(options)}
    shared = [one for name, one in inspect.signature(method).parameters.items() if name in taken]
    assert len(shared) > 7
    for one in shared:
        assert one.annotation in (taken[one.name].type, "str"), one.name  # a scalable topic is always a name
        assert one.default == default_of(taken[one.name]), one.name


@pytest.mark.parametrize("method", [*METHODS, *SUBSETS])
def test_help_explains_each_option(method: Callable[..., Any]) -> None:
    assert texts_of(method.__doc__).keys() == inspect.signature(method).parameters.keys() - {"self"}


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (Client.create_producer, "create_producer() has no option 'nam': see help(Client.create_producer)"),
        (ScalableTopics.subscribe_queue, "subscribe_queue() has no option 'consumer_nam': did you mean consumer_name?"),
    ],
)
def test_an_unknown_option_is_refused_by_name(call: Callable[..., Any], refusal: str) -> None:
    name = refusal.split("'")[1]
    with pytest.raises(TypeError) as refused:
        call(None, "t", **{name: "x"})
    assert str(refused.value) == refusal


def default_of(field: Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is MISSING else field.default


def test_sending_takes_what_a_draft_takes() -> None:
    for method, more in ((Producer.send, ["txn"]), (Producer.send_nowait, []), (Producer.submit, ["txn"])):
        parameters = inspect.signature(method).parameters
        assert [*parameters][1:] == ["content", *more, "options"]
        assert parameters["options"].annotation == "Unpack[MessageOptions]"


def types_that_are_inferred(client: Client) -> None:
    """Test the types that mypy and pyright infer (scripts/check). Nothing runs this function."""
    assert_type(client.create_producer("t"), Producer[bytes])
    assert_type(client.create_producer("t", schema=StringSchema()), Producer[str])
    assert_type(client.subscribe("t", "s"), Consumer[bytes])
    assert_type(client.subscribe("t", "s", schema=StringSchema()), Consumer[str])
    assert_type(client.create_reader("t"), Reader[bytes])
    assert_type(client.create_reader("t", schema=StringSchema()), Reader[str])
    assert_type(client.create_producer("t", schema=StringSchema(), batching_enabled=False), Producer[str])
    assert_type(client.scalable.create_producer("t"), ScalableProducer[bytes])
    assert_type(client.scalable.subscribe_queue("t", "s", schema=StringSchema()), QueueConsumer[str])


def options_that_are_judged(client: Client, of_texts: ProducerInterceptor[str], received: ConsumerInterceptor) -> None:
    """Test what mypy refuses: it reports a comment without use (scripts/check). Nothing runs this function."""
    client.create_producer("t", schema=StringSchema(), interceptors=[of_texts])
    client.subscribe("t", "s", interceptors=[received])
    client.create_producer("t", batching_max_messages="x")  # type: ignore[arg-type]
    client.subscribe("t", "s", consumer_typ=None)  # type: ignore[call-arg]
    client.scalable.create_producer("t", interceptors=[of_texts])  # type: ignore[call-arg]
