"""Snapshots of both stores: they bring back all that a broker keeps, as clients and REST see it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.lab import Lab
from pulsarium.broker.model.compaction.compacted import CompactedLedger, CompactedTopic
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.topic_name import TopicName
from tests.broker.model.compaction.topics import compact
from tests.broker.web.admin.rest import rest_of
from tests.broker.wire import Bed, Earliest, Shared, Type, Wire, batch_of, plain, serving

SEEDS = range(6)
TOPICS = [f"persistent://public/default/t{number}" for number in range(4)]


async def live_on(bed: Bed, wire: Wire, chance: Random) -> None:
    """Do all that a broker keeps, in any order: from publishing to compaction."""
    metadata, topics = bed.broker.metadata, bed.broker.topics
    for number in range(40):
        name = chance.choice(TOPICS)
        match chance.randrange(11):
            case 0 | 1 | 2:
                entries = [
                    plain(b"%d" % number, partition_key=chance.choice("abc"))
                    if chance.random() < 0.6
                    else batch_of(b"x", b"%d" % number, b"z")
                    for _ in range(chance.randrange(1, 8))
                ]
                await wire.producer(name, producer_id=number)
                for each in entries:
                    await wire.publish(each, producer_id=number, num_messages=1)
                await wire.request(Type.CLOSE_PRODUCER, producer_id=number)
            case 3 | 4:
                await acknowledge(wire, name, f"s{chance.randrange(3)}", number, chance)
            case 5:
                schema = {"name": "s", "type": chance.choice([1, 2]), "schema_data": b"%d" % number}
                await wire.request(Type.GET_OR_CREATE_SCHEMA, topic=name, schema=schema)
            case 6:
                metadata.put_topic_policies(TopicName.parse(name), {"maxProducers": number + 50})
                metadata.put_namespace(f"public/n{number % 3}", {"replication_clusters": ["standalone"]})
            case 7:
                metadata.put_partitioned(TopicName.parse(f"persistent://public/n/p{number}"), number)
            case 8:
                if topics.exists(TopicName.parse(name)):
                    topics.unload(TopicName.parse(name))
            case 9:
                await wire.subscribe(name, f"s{chance.randrange(3)}", Shared, consumer_id=number)
                await wire.ask(Type.UNSUBSCRIBE, consumer_id=number)
            case 10:
                if topics.exists(TopicName.parse(name)):
                    topic = topics.find(TopicName.parse(name))
                    assert isinstance(topic, PersistentTopic)
                    await compact(topic)


async def acknowledge(wire: Wire, topic: str, name: str, number: int, chance: Random) -> None:
    await wire.subscribe(topic, name, Shared, consumer_id=number, initialPosition=Earliest)
    await wire.flow(100, consumer_id=number)
    await wire.send(Type.PING)
    messages = []
    while (received := await wire.next()).command.type != Type.PONG:
        if received.command.type == Type.MESSAGE:
            messages.append(received.command.message.message_id)
    for each in messages:
        if chance.random() < 0.5:
            fields = {"ack_set": [0b110]} if chance.random() < 0.3 else {}
            ids = [{"ledgerId": each.ledgerId, "entryId": each.entryId, **fields}]
            await wire.ask(Type.ACK, consumer_id=number, ack_type=0, message_id=ids)
    await wire.request(Type.CLOSE_CONSUMER, consumer_id=number)


def unacknowledged(cursor: ManagedCursor) -> list[Position]:
    ledgers = cursor.ledger.ledgers.values()
    positions = [Position(ledger.id, number) for ledger in ledgers for number in range(ledger.count)]
    return [each for each in positions if each > cursor.mark_delete and each not in cursor.individual_acks]


def retained(compacted: CompactedTopic) -> list[bytes]:
    ledger = compacted.ledger if isinstance(compacted, CompactedLedger) else None
    return [ledger.read_now(number) for number in range(ledger.confirmed)] if ledger else []


def seen(bed: Bed) -> dict[str, Any]:
    """Return all that the broker keeps, and unload the topics."""
    metadata, topics = bed.broker.metadata, bed.broker.topics
    found: dict[str, Any] = {
        "tenants": dict(metadata.tenants),
        "namespaces": dict(metadata.namespaces),
        "partitioned": dict(metadata.partitioned),
        "policies": dict(metadata.topic_policies),
    }
    for text in topics.names("public/default"):
        name = TopicName.parse(text)
        topic = topics.find(name)
        assert isinstance(topic, PersistentTopic)
        ledger = topic.ledger
        found[text] = {
            "entries": list(ledger.all_after(ledger.first_position())),
            "ledgers": [(each.id, each.count, each.size) for each in ledger.ledgers.values() if each.count],
            "compacted": retained(topic.compaction.compacted),
            "properties": ledger.properties,
            "schemas": [bed.broker.schemas.get(name, version) for version in range(5)],
            "cursors": {
                cursor.name: (
                    cursor.backlog(),
                    unacknowledged(cursor),
                    {position: cursor.batch_acks.words(position) for position in cursor.batch_acks},
                    cursor.properties,
                    cursor.cursor_properties,
                )
                for cursor in topic.log.cursors.values()
            },
        }
        topics.unload(name)
    return found


def kept(bed: Bed) -> dict[str, Any]:
    """Load all topics anew, and return what `seen` returns: cursors then read from the first unacknowledged message."""
    for text in bed.broker.topics.names("public/default"):
        if text in bed.broker.topics.loaded:
            bed.broker.topics.unload(TopicName.parse(text))
    return seen(bed)


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("seed", SEEDS)
async def test_equal_after_a_reset_and_a_restart(tmp_path: Path, seed: int, store: str) -> None:
    data, file = tmp_path / "data" if store == "sqlite" else None, tmp_path / "s"
    config = Config(managedLedgerMaxEntriesPerLedger=5, managedLedgerMinLedgerRolloverTimeMinutes=0)
    async with serving(config, data=data) as bed:
        await live_on(bed, await bed.connect(), Random(seed))
        lab = bed.broker.cluster.attached(Lab)
        await lab.state.snapshot(file)
        before = kept(bed)
        assert any(key.startswith("persistent") for key in before)
        await lab.state.reset()
        assert kept(bed) != before
        await live_on(bed, await bed.connect(), Random(seed + 1000))
        await lab.state.restore(file)
        assert kept(bed) == before
        assert (await rest_of(bed).get("/admin/v2/namespaces/public")) == sorted(
            name for name in before["namespaces"] if name.startswith("public/")
        )
    if data is not None:
        async with serving(config, data=data) as again:
            assert kept(again) == before
    async with serving(config, data=None if data is not None else tmp_path / "other") as other:
        lab = other.broker.cluster.attached(Lab)
        await lab.state.restore(file)
        assert kept(other) == before


async def test_a_snapshot_has_a_shadow_topic_with_what_it_has_acknowledged(tmp_path: Path) -> None:
    shadow = "persistent://public/default/shadow"
    async with serving() as bed:
        rest, wire = rest_of(bed), await bed.connect()
        await wire.producer(TOPICS[0])
        (first, second) = await wire.publish(plain(b"a"), plain(b"b"))
        await rest.done("PUT", "/admin/v2/persistent/public/default/shadow", {"PULSAR.SHADOW_SOURCE": TOPICS[0]})
        await wire.subscribe(shadow, initialPosition=Earliest)
        await wire.flow()
        await wire.messages(2)
        await wire.ack(first)
        lab = bed.broker.cluster.attached(Lab)
        await lab.state.snapshot(tmp_path / "s")
        await lab.state.restore(tmp_path / "s")
        wire = await bed.connect()
        await wire.subscribe(shadow)
        await wire.flow()
        assert [each.position for each in await wire.messages(1)] == [second]
