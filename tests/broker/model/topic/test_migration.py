"""Clients of a cluster or namespace that has migrated (PIP-188)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.web.admin.rest import NAMESPACES, Rest, rest_of
from tests.broker.wire import TOPIC, Bed, Earliest, Shared, Type, Wire, plain, serving

MIGRATE = "/admin/v2/clusters/standalone/migrate?migrated="
GREEN = {"brokerServiceUrl": "pulsar://green:6650", "brokerServiceUrlTls": "pulsar+ssl://green:6651"}
OTHER = "persistent://public/default/other"
NON_PERSISTENT = "non-persistent://public/default/t"
UNASKED = 2**64 - 1
CHECKED = Config(clusterMigrationCheckDurationSeconds=1)


async def migrate(rest: Rest, migrated: bool = True) -> None:
    answer = await rest.call("POST", f"{MIGRATE}{str(migrated).lower()}", GREEN)
    assert answer.status == 200


async def sent_away(wire: Wire, kind: int, resource_id: int) -> None:
    """Expect TOPIC_MIGRATED for a producer or a consumer, and then the command that closes it."""
    told = await wire.expect(Type.TOPIC_MIGRATED)
    assert (told.resource_type, told.resource_id) == (kind, resource_id)
    assert {"brokerServiceUrl": told.brokerServiceUrl, "brokerServiceUrlTls": told.brokerServiceUrlTls} == GREEN
    if kind == pb.CommandTopicMigrated.Producer:
        closed = await wire.expect(Type.CLOSE_PRODUCER)
        assert (closed.producer_id, closed.request_id) == (resource_id, UNASKED)
    else:
        closed = await wire.expect(Type.CLOSE_CONSUMER)
        assert (closed.consumer_id, closed.request_id) == (resource_id, UNASKED)
    assert not closed.assignedBrokerServiceUrl


Producer, Consumer = pb.CommandTopicMigrated.Producer, pb.CommandTopicMigrated.Consumer


async def ask_producer(wire: Wire, topic: str, producer_id: int) -> None:
    await wire.write(wire.numbered(Type.PRODUCER, topic=topic, producer_id=producer_id))


async def ask_consumer(wire: Wire, topic: str, consumer_id: int, name: str = "sub", **fields: Any) -> None:
    fields = {"subType": Shared, **fields}
    asked = wire.numbered(Type.SUBSCRIBE, topic=topic, subscription=name, consumer_id=consumer_id, **fields)
    await wire.write(asked)


@pytest.fixture
async def checked(autojump_clock: trio.testing.MockClock) -> AsyncIterator[Bed]:
    async with serving(CHECKED) as bed:
        yield bed


async def test_clients_are_sent_on_when_nothing_is_left_for_them(checked: Bed) -> None:
    rest, wire = rest_of(checked), await checked.connect()
    await wire.producer()
    await wire.subscribe(name="done", consumer_id=0)
    await wire.subscribe(name="behind", consumer_id=1)
    (position,) = await wire.publish(plain(b"x"))
    await wire.flow(consumer_id=0)
    await wire.message()
    await wire.ack(position, consumer_id=0)
    await migrate(rest)
    await sent_away(wire, Producer, 0)
    await sent_away(wire, Consumer, 0)
    await wire.flow(consumer_id=1)
    assert (await wire.message()).payload == b"x"
    await wire.ack(position, consumer_id=1)
    await sent_away(wire, Consumer, 1)
    await wire.quiet(3)


async def test_non_persistent_topics_have_nothing_left(checked: Bed) -> None:
    rest, wire = rest_of(checked), await checked.connect()
    await wire.producer(NON_PERSISTENT)
    await wire.subscribe(NON_PERSISTENT)
    await migrate(rest)
    await sent_away(wire, Producer, 0)
    await sent_away(wire, Consumer, 0)


async def test_clients_that_come_after_the_migration_are_sent_on(bed: Bed, wire: Wire) -> None:
    rest = rest_of(bed)
    await migrate(rest)
    await ask_producer(wire, OTHER, 3)
    await sent_away(wire, Producer, 3)
    await wire.write(wire.sends(plain(b"late"), producer_id=3))
    await ask_consumer(wire, OTHER, 4)
    await sent_away(wire, Consumer, 4)
    await ask_consumer(wire, NON_PERSISTENT, 5)
    await sent_away(wire, Consumer, 5)
    await wire.quiet()


async def test_topics_that_are_loaded_stay_unless_they_are_checked(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    await migrate(rest_of(bed))
    await wire.publish(plain(b"x"))
    await wire.quiet(20)


async def test_a_backlog_can_be_read(checked: Bed) -> None:
    rest, wire = rest_of(checked), await checked.connect()
    await wire.producer()
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    await wire.publish(plain(b"x"))
    await migrate(rest)
    await sent_away(wire, Producer, 0)
    await wire.subscribe(type=Shared, consumer_id=1)
    await wire.flow(consumer_id=1)
    message = await wire.message()
    await wire.ack(message.position, consumer_id=1)
    for consumer_id in (0, 1):
        await sent_away(wire, Consumer, consumer_id)


async def test_a_topic_that_moved_stays_closed(checked: Bed) -> None:
    rest, wire = rest_of(checked), await checked.connect()
    await wire.producer()
    await migrate(rest)
    await sent_away(wire, Producer, 0)
    await migrate(rest, migrated=False)
    migrated = (
        "org.apache.pulsar.broker.service.BrokerServiceException$TopicMigratedException: Topic was already migrated"
    )
    assert await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=1) == (pb.UnknownError, migrated)
    await wire.producer(OTHER, 2)
    await wire.subscribe()


async def test_a_namespace_may_move_alone(bed: Bed, wire: Wire) -> None:
    rest = rest_of(bed)
    await migrate(rest, migrated=False)
    await rest.done("PUT", f"{NAMESPACES}/public/stays")
    await rest.done("POST", f"{NAMESPACES}/public/default/migration", True)
    await ask_producer(wire, TOPIC, 0)
    await sent_away(wire, Producer, 0)
    await wire.producer("persistent://public/stays/t", 1)


async def test_a_client_of_before_is_only_closed(bed: Bed) -> None:
    await migrate(rest_of(bed))
    wire = await bed.connect(version=19)
    await ask_producer(wire, TOPIC, 0)
    assert (await wire.expect(Type.CLOSE_PRODUCER)).producer_id == 0


async def test_a_migrated_topic_stays_closed_after_a_restart(tmp_path: Path) -> None:
    async with serving(CHECKED, data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.publish(plain(b"x"))
        await migrate(rest_of(bed))
        with trio.fail_after(30):
            await sent_away(wire, Producer, 0)
        await migrate(rest_of(bed), migrated=False)
    async with serving(data=tmp_path) as bed:
        code, _ = await (await bed.connect()).refused(Type.PRODUCER, topic=TOPIC, producer_id=1)
        assert code == pb.UnknownError
