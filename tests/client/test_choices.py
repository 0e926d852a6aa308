"""Uses of the client that cannot be meant: an error says what to write instead."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pulsarium.client import (
    ConsumerKeySharedPolicy,
    ConsumerType,
    KeyValueSchema,
    MessageId,
    StringSchema,
    connect,
)
from pulsarium.client.client import Client
from pulsarium.client.errors import InvalidConfiguration
from tests.client.both import on_both

URL = "pulsar://nowhere"


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("consumer_type", "Shared", "consumer_type is 'Shared': pass ConsumerType.Shared"),
        ("consumer_type", 1, "pass one of ConsumerType.Exclusive, ConsumerType.Shared, "),
        ("consumer_type", "Key_Shared", "did you mean KeyShared"),
        ("initial_position", "Earliest", "pass InitialPosition.Earliest"),
        ("crypto_failure_action", "DISCARD", "pass ConsumerCryptoFailureAction.DISCARD"),
        ("regex_subscription_mode", "AllTopics", "pass RegexSubscriptionMode.AllTopics"),
    ],
)
@on_both
async def test_an_option_of_a_consumer_is_refused_at_the_call(option: str, value: object, says: str) -> None:
    given: dict[str, Any] = {option: value}
    async with connect(URL) as client:
        with pytest.raises(InvalidConfiguration, match=says):
            client.subscribe("t", "s", **given)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("compression_type", "LZ4", "pass CompressionType.LZ4"),
        ("batching_type", "KeyBased", "pass BatchingType.KeyBased"),
        ("access_mode", "Exclusive", "pass ProducerAccessMode.Exclusive"),
        ("message_routing_mode", "UseSinglePartition", "pass PartitionsRoutingMode.UseSinglePartition"),
        ("hashing_scheme", "Murmur3_32Hash", "pass HashingScheme.Murmur3_32Hash"),
    ],
)
@on_both
async def test_an_option_of_a_producer_is_refused_at_the_call(option: str, value: object, says: str) -> None:
    given: dict[str, Any] = {option: value}
    async with connect(URL) as client:
        with pytest.raises(InvalidConfiguration, match=says):
            client.create_producer("t", **given)


def test_a_text_is_no_key_shared_mode_and_no_encoding() -> None:
    with pytest.raises(InvalidConfiguration, match=r"pass KeySharedMode\.Sticky"):
        ConsumerKeySharedPolicy(key_shared_mode="Sticky")  # type: ignore[arg-type]
    with pytest.raises(InvalidConfiguration, match=r"pass KeyValueEncodingType\.SEPARATED"):
        KeyValueSchema(StringSchema(), StringSchema(), "SEPARATED")  # type: ignore[arg-type]


@on_both
async def test_a_representation_names_the_topic() -> None:
    async with connect(URL) as client:
        shown = [
            repr(client.create_producer("t", producer_name="p")),
            repr(client.subscribe("t", "s", consumer_type=ConsumerType.Shared, consumer_name="c")),
            repr(client.create_reader("t", MessageId.earliest)),
            repr(client.create_raw_reader("t", MessageId.earliest)),
        ]
    topic = "persistent://public/default/t"
    assert shown == [
        f"<Producer 'p' of {topic}>",
        f"<Consumer 'c' of {topic}, subscription 's'>",
        f"<Reader of {topic}>",
        f"<RawReader of {topic}>",
    ]


@on_both
async def test_a_representation_names_the_scalable_topic() -> None:
    topic = "topic://a/b/t"
    async with connect(URL) as client:
        scalable = client.scalable
        made = [
            scalable.create_producer(topic, producer_name="p"),
            scalable.subscribe_queue(topic, "s"),
            scalable.subscribe_stream(topic, "s"),
            scalable.create_checkpoint_consumer(topic),
            scalable.subscribe_namespace("a/b", "s"),
        ]
        shown = [repr(one) for one in made]
        for one in made:
            await one.aclose()
    assert shown == [
        "<ScalableProducer 'p' of topic://a/b/t>",
        "<QueueConsumer of topic://a/b/t, subscription 's'>",
        "<StreamConsumer of topic://a/b/t, subscription 's'>",
        "<CheckpointConsumer of topic://a/b/t>",
        "<NamespaceStreamConsumer of a/b, subscription 's'>",
    ]


def test_a_client_without_its_block_says_what_to_write() -> None:
    opening: Any = connect(URL)
    with pytest.raises(
        AttributeError, match=r"write `async with connect\(...\) as client:`, and call client.subscribe"
    ):
        opening.subscribe("t", "s")
    with pytest.raises(AttributeError, match=r"^colour$"):
        _ = opening.colour


@on_both
async def test_an_awaited_client_says_what_to_write() -> None:
    opening: Any = connect(URL)
    with pytest.raises(TypeError, match=r"write `async with connect\(...\) as client:`"):
        await opening


@pytest.mark.parametrize("name", ["create_producer", "subscribe", "create_reader", "create_table_view"])
@on_both
async def test_an_awaited_producer_consumer_reader_or_view_says_what_to_write(name: str) -> None:
    async with connect(URL) as client:
        assert isinstance(client, Client)
        more: tuple[object, ...] = {"subscribe": ("s",), "create_reader": (MessageId.earliest,)}.get(name, ())
        made: Any = getattr(client, name)("t", *more)
        with pytest.raises(TypeError, match=rf"a {type(made).__name__} opens in a block: write `async with"):
            await made
        await anyio.lowlevel.checkpoint()
