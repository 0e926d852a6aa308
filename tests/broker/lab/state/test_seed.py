"""Seed files of the broker's state."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.state import SeedError, StateControl, description, state
from pulsarium.broker.lab.state.description import SeedMessage
from pulsarium.broker.lab.state.seed import Seeding
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.net import slices
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import Bed, Earliest, Shared, Type, serving

SEED = """
[[tenants]]
name = "acme"
adminRoles = ["boss"]

[[namespaces]]
name = "acme/orders"
policies = { message_ttl_in_seconds = 3600, max_producers_per_topic = 5 }

[[topics]]
name = "persistent://acme/orders/new"
properties = { owner = "me" }
schema = { type = "json", schema = { type = "record", name = "Order", fields = [] } }
subscriptions = ["billing", { name = "audit", position = "latest" }]

[[topics.messages]]
json = { id = 1 }
key = "k"
properties = { a = "b" }
eventTime = 2030-01-01T00:00:00Z

[[topics.messages]]
base64 = "AAEC"
deliverAfterMs = 604800000

[[topics]]
name = "acme/orders/many"
partitions = 2
subscriptions = ["all"]
messages = ["first", { text = "second", partition = 1 }]
"""


@pytest.fixture
async def either(tmp_path: Path) -> AsyncIterator[Bed]:
    async with serving() as bed:
        yield bed


def state_of(bed: Bed) -> StateControl:
    return bed.broker.cluster.attached(Lab).state


async def test_everything_at_once_and_only_once(either: Bed, tmp_path: Path) -> None:
    path = tmp_path / "seed.toml"
    path.write_text(SEED)
    made = await state_of(either).seed(path)
    assert made == {"tenants": 1, "namespaces": 1, "topics": 2, "subscriptions": 3, "messages": 4}
    metadata = either.broker.metadata
    assert metadata.tenants["acme"] == {"allowedClusters": ["standalone"], "adminRoles": ["boss"]}
    assert metadata.namespaces["acme/orders"]["message_ttl_in_seconds"] == 3600
    assert metadata.partitions_of(TopicName.parse("acme/orders/many")) == 2
    again = await state_of(either).seed(path)
    assert set(again.values()) == {0}

    wire = await either.connect()
    new = "persistent://acme/orders/new"
    await wire.subscribe(new, "billing", Shared, consumer_id=1)
    await wire.flow(consumer_id=1)
    first = await wire.message()
    assert first.payload == b'{"id":1}'
    sent = parse_metadata(first.entry)
    assert (sent.partition_key, sent.event_time) == ("k", 1893456000000)
    assert [(each.key, each.value) for each in sent.properties] == [("a", "b")]
    found = await wire.ask(Type.GET_SCHEMA, topic=new)
    assert (found.schema.type, json.loads(found.schema.schema_data)["name"]) == (pb.Schema.Json, "Order")
    assert sent.schema_version == found.schema_version
    await wire.alive()  # the other message is due in a week
    await wire.subscribe(new, "audit", Shared, consumer_id=2)
    await wire.flow(consumer_id=2)
    await wire.alive()
    for number, text in enumerate((b"first", b"second")):
        topic = f"persistent://acme/orders/many-partition-{number}"
        await wire.subscribe(topic, "all", Shared, consumer_id=3 + number)
        await wire.flow(consumer_id=3 + number)
        assert (await wire.message()).payload == text


async def test_a_topic_that_is_there_keeps_what_it_has(either: Bed) -> None:
    wire = await either.connect()
    await wire.producer()
    topic = {"name": "t", "messages": ["x"], "subscriptions": ["sub"]}
    made = await state_of(either).seed_text(json.dumps({"topics": [topic]}))
    assert (made["topics"], made["messages"], made["subscriptions"]) == (0, 0, 1)
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    await wire.alive()


@pytest.mark.parametrize(
    ("seed", "text"),
    [
        ("[[topics", "neither TOML nor JSON: "),
        ('{"topics": }', "neither TOML nor JSON: "),
        (f"number = {'9' * 5000}", "neither TOML nor JSON: .* has 5000 digits$"),
        ({"topic": []}, "topic: there are tenants, namespaces, topics"),
        ({"topics": {}}, "topics: a list of tables"),
        ({"topics": ["t"]}, r"topics\[0\]: a table, with name"),
        ({"topics": [{}]}, r"topics\[0\].name: a text"),
        ({"topics": [{"name": "t", "size": 3}]}, r"topics\[0\].size: there are name, partitions"),
        ({"topics": [{"name": "t", "partitions": "3"}]}, r"topics\[0\].partitions: a number"),
        ({"topics": [{"name": "t", "partitions": True}]}, r"topics\[0\].partitions: a number"),
        ({"topics": [{"name": "non-persistent://public/default/t"}]}, r"topics\[0\].name: a non-persistent"),
        ({"topics": [{"name": "topic://public/default/t"}]}, r"topics\[0\].name: a seed has no scalable topics"),
        ({"topics": [{"name": "segment://public/default/t/0-ffff-0"}]}, r"\.name: a seed has no scalable topics"),
        ({"topics": [{"name": "a://b"}]}, r"topics\[0\].name: "),
        (
            {"topics": [{"name": "t"}, {"name": "t", "messages": [{"key": 1}]}]},
            r"topics\[1\].messages\[0\].key: a text",
        ),
        ({"topics": [{"name": "t", "messages": [{"text": "a", "json": 1}]}]}, r"messages\[0\].json: a message has one"),
        ({"topics": [{"name": "t", "messages": [{"base64": "!"}]}]}, r"messages\[0\].base64: "),
        ({"topics": [{"name": "t", "messages": [{"deliverAt": "soon"}]}]}, r"messages\[0\].deliverAt: milliseconds"),
        ({"topics": [{"name": "t", "messages": [{"eventTime": "2030-01-01T00:00:00"}]}]}, "the time has no zone"),
        ({"topics": [{"name": "t", "messages": [{"partition": 1}]}]}, r"messages\[0\].partition: the topic has 0"),
        ({"topics": [{"name": "t", "schema": {"type": "xml"}}]}, r"topics\[0\].schema.type: there are NONE, STRING"),
        ({"topics": [{"name": "t", "subscriptions": [{"name": "s", "position": 3}]}]}, r"subscriptions\[0\].position"),
        ({"topics": [{"name": "a/b/t"}]}, "topic persistent://a/b/t: its namespace does not exist"),
        ({"namespaces": [{"name": "a/b"}]}, "namespace a/b: its tenant does not exist"),
        ({"namespaces": [{"name": "public/x", "policies": {"ttl": 3}}]}, r"namespaces\[0\].policies.ttl: no policy"),
        (
            {"namespaces": [{"name": "public/x", "policies": {"message_ttl_in_seconds": "x"}}]},
            r"namespaces\[0\].policies.message_ttl_in_seconds: ",
        ),
        ({"tenants": [{"name": "a/b"}]}, r"tenants\[0\].name: no name of a tenant"),
        ({"topics": [{"name": "t"}, {"name": "t", "messages": ["x"]}]}, r"\[1\].name: the topic is described twice"),
        (
            {"topics": [{"name": "t-partition-0"}]},
            r"topics\[0\].name: a partition; describe persistent://public/default/t",
        ),
        ({"topics": [{"name": "t", "subscriptions": ["__compaction"]}]}, r"subscriptions\[0\].name: .*reserved"),
        ({"topics": [{"name": "t", "messages": [{"eventTime": "1960-01-01T00:00:00Z"}]}]}, "the time is before 1970"),
        ({"topics": [{"name": "t", "messages": [{"deliverAt": 2**63}]}]}, r"messages\[0\].deliverAt: milliseconds"),
        ({"topics": [{"name": "t", "messages": [{"deliverAfterMs": 2**63}]}]}, r"deliverAfterMs: a number, 0 to"),
        ('{"topics": [{"name": "t", "messages": [{"key": "\\ud800"}]}]}', "neither TOML nor JSON: .*surrogates"),
        ({"tenants": [{"name": "x", "adminRoles": "me"}]}, r"tenants\[0\].adminRoles: a list of texts"),
    ],
)
async def test_a_wrong_seed_is_named_and_creates_nothing(either: Bed, seed: Any, text: str) -> None:
    given = seed if isinstance(seed, str) else json.dumps(seed)
    with pytest.raises(SeedError, match=text):
        await state_of(either).seed_text(given)
    assert either.broker.topics.names("public/default") == []
    assert sorted(either.broker.metadata.namespaces) == ["public/default", "pulsar/system"]


def test_json_is_read_in_steps_of_python_between_which_other_threads_run() -> None:
    steps = 0

    def count(*event: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        description.PatientDecoder().decode(json.dumps({"topics": ["a"] * 500 + [[[]]] * 500}))
    finally:
        sys.setprofile(None)
    assert steps > 1000


async def test_the_broker_serves_others_while_a_seed_is_read(either: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    others_were_served = threading.Event()

    def read_until_then(text: str) -> description.Description:
        assert others_were_served.wait(30)
        return description.read(text)

    monkeypatch.setattr(state, "read", read_until_then)
    wire = await either.connect()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(state_of(either).seed_text, '{"topics": [{"name": "t"}]}')
        await trio.lowlevel.checkpoint()
        await wire.alive()
        others_were_served.set()
    assert either.broker.topics.names("public/default") == ["persistent://public/default/t"]


async def test_others_have_their_turn_between_two_messages_of_a_seed(
    either: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE", 0)
    publish, turns = Seeding._publish, 0
    seen: list[int] = []

    def noting(seeding: Seeding, topic: PersistentTopic, number: int, message: SeedMessage, version: bytes) -> None:
        seen.append(turns)
        publish(seeding, topic, number, message, version)

    monkeypatch.setattr(Seeding, "_publish", noting)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(state_of(either).seed_text, json.dumps({"topics": [{"name": "t", "messages": ["a"] * 10}]}))
        while either.broker.topics.names("public/default") == [] or len(seen) < 10:
            await trio.lowlevel.checkpoint()
            turns += 1
    assert len(set(seen)) >= 5  # either task may run first, so one may run twice before the other


async def test_other_partitions_than_there_are(either: Bed) -> None:
    seed = json.dumps({"topics": [{"name": "t", "partitions": 2}]})
    await state_of(either).seed_text(seed)
    with pytest.raises(SeedError, match="the topic exists with 2 partitions, not 3"):
        await state_of(either).seed_text(seed.replace("2", "3"))


async def test_a_file_that_is_not_there(either: Bed, tmp_path: Path) -> None:
    with pytest.raises(SeedError, match=r"none\.toml"):
        await state_of(either).seed(tmp_path / "none.toml")


async def test_a_seed_that_the_broker_refuses_names_the_topic(either: Bed) -> None:
    described = {
        "namespaces": [{"name": "public/few", "policies": {"max_subscriptions_per_topic": 1}}],
        "topics": [{"name": "public/few/t", "subscriptions": ["a", "b"]}],
    }
    with pytest.raises(SeedError, match="topic persistent://public/few/t: Exceed the maximum number of subscriptions"):
        await state_of(either).seed_text(json.dumps(described))
