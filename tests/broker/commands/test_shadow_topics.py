"""Shadow topics (PIP-180): consumers receive what a real 4.2.4 sends. Differences are in docs/differences.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.held import HeldStorage
from tests.broker.model.transaction.buffered import in_txn, txn
from tests.broker.web.admin.rest import NAMESPACES, TOPICS, Rest, rest_of
from tests.broker.wire import (
    TOPIC,
    Bed,
    Cumulative,
    Earliest,
    Shared,
    Type,
    Wire,
    batch_of,
    message_id,
    plain,
    position_of,
    serving,
)

SHADOW = "persistent://public/default/shadow"
METADATA = "application/vnd.partitioned-topic-metadata+json"
SMALL_LEDGERS = Config(
    managedLedgerMaxEntriesPerLedger=2,
    managedLedgerMinLedgerRolloverTimeMinutes=0,
    transactionCoordinatorEnabled=True,
    forceDeleteNamespaceAllowed=True,
)
pytestmark = pytest.mark.serving(SMALL_LEDGERS)


async def make(rest: Rest, name: str = "shadow", source: str = TOPIC) -> None:
    await rest.done("PUT", f"{TOPICS}/{name}", {"PULSAR.SHADOW_SOURCE": source})


async def listed(rest: Rest, *names: str) -> None:
    await rest.done("PUT", f"{TOPICS}/t/shadowTopics", list(names))


async def reading(bed: Bed, topic: str = SHADOW, name: str = "sub", **fields: Any) -> Wire:
    """Return a connection whose consumer reads from the first message."""
    wire = await bed.connect()
    await wire.subscribe(topic, name, **{"initialPosition": Earliest, **fields})
    await wire.flow()
    return wire


async def last_id(wire: Wire) -> Position:
    return position_of((await wire.ask(Type.GET_LAST_MESSAGE_ID, consumer_id=0)).last_message_id)


@pytest.fixture
async def rest(bed: Bed) -> Rest:
    """Create a source and its shadow, list the shadow, and return the REST client."""
    rest = rest_of(bed)
    await rest.done("PUT", f"{TOPICS}/t")
    await make(rest)
    await listed(rest, SHADOW)
    return rest


async def test_a_listed_shadow_gets_each_message(bed: Bed, rest: Rest, sender: Wire) -> None:
    consumer, source = await reading(bed), await reading(bed, TOPIC)
    entry = plain(b"b", sequence_id=77, publish_time=1234, properties=[{"key": "k", "value": "v"}])
    positions = await sender.publish(plain(b"a"), entry, batch_of(b"x", b"y"))
    found, original = await consumer.messages(3), await source.messages(3)
    assert [each.position for each in found] == positions
    assert [each.entry for each in found] == [each.entry for each in original]
    assert await last_id(consumer) == positions[-1]


async def test_a_shadow_topic_has_the_messages_of_its_source(bed: Bed, sender: Wire) -> None:
    await sender.publish(plain(b"old"))
    rest = rest_of(bed)
    await make(rest)
    consumer = await reading(bed)
    assert await consumer.payloads(1) == [b"old"]
    await sender.publish(plain(b"not told of"))
    await consumer.quiet()
    await listed(rest, SHADOW)
    await consumer.quiet()
    await sender.publish(plain(b"new"))
    assert await consumer.payloads(2) == [b"not told of", b"new"]


async def test_a_shadow_that_is_not_listed_gets_new_messages_when_it_is_loaded(bed: Bed, sender: Wire) -> None:
    rest = rest_of(bed)
    await make(rest)
    consumer = await reading(bed)
    (position,) = await sender.publish(plain(b"new"))
    await consumer.quiet()
    assert await last_id(consumer) == Position(-1, -1)
    await rest.done("PUT", f"{TOPICS}/shadow/unload")
    consumer = await reading(bed)
    assert [each.position for each in await consumer.messages(1)] == [position]


async def test_no_message_comes_once_the_policy_is_gone(bed: Bed, rest: Rest, sender: Wire) -> None:
    consumer = await reading(bed)
    await sender.publish(plain(b"a"))
    assert await consumer.payloads(1) == [b"a"]
    await rest.done("DELETE", f"{TOPICS}/t/shadowTopics")
    await sender.publish(plain(b"b"))
    await consumer.quiet()


async def test_several_shadows_in_any_namespace(bed: Bed, rest: Rest, sender: Wire) -> None:
    await rest.done("PUT", f"{NAMESPACES}/public/other")
    await rest.done("PUT", f"{TOPICS.replace('default', 'other')}/far", {"PULSAR.SHADOW_SOURCE": TOPIC})
    far = "persistent://public/other/far"
    await listed(rest, "shadow", far)
    consumers = [await reading(bed), await reading(bed, far)]
    await sender.publish(plain(b"a"), plain(b"b"), plain(b"c"))
    await sender.publish(plain(b"d"))
    for consumer in consumers:
        assert await consumer.payloads(4) == [b"a", b"b", b"c", b"d"]


async def test_a_shadow_has_shadows(bed: Bed, rest: Rest, sender: Wire) -> None:
    await make(rest, "leaf", SHADOW)
    await rest.done("PUT", f"{TOPICS}/shadow/shadowTopics", ["leaf"])
    consumer = await reading(bed, "persistent://public/default/leaf")
    await sender.publish(plain(b"a"))
    assert await consumer.payloads(1) == [b"a"]


async def test_nothing_is_shown_before_its_commit(store: HeldStorage, bed: Bed, rest: Rest, sender: Wire) -> None:
    consumer = await reading(bed)
    store.holding = True
    await sender.write(sender.sends(plain(b"a")))
    await consumer.quiet()
    store.release(1)
    assert await consumer.payloads(1) == [b"a"]


async def test_a_failed_commit_is_not_shown_and_the_shadow_goes_on(
    store: HeldStorage, bed: Bed, rest: Rest, sender: Wire
) -> None:
    consumer = await reading(bed)
    store.holding = True
    await sender.write(sender.sends(plain(b"lost")))
    await sender.quiet()
    store.fail()
    await sender.expect(Type.SEND_ERROR)
    await sender.expect(Type.CLOSE_PRODUCER)
    store.release()
    await sender.producer()
    await sender.publish(plain(b"kept"))
    assert await consumer.payloads(1) == [b"kept"]
    await consumer.quiet()


# subscriptions


async def test_subscriptions_of_both_topics_are_independent(bed: Bed, rest: Rest, sender: Wire) -> None:
    consumer, source = await reading(bed), await reading(bed, TOPIC)
    positions = await sender.publish(*(plain(b"%d" % number) for number in range(5)))
    await consumer.messages(5)
    await consumer.ack(positions[3], type=Cumulative)
    assert bed.topic(SHADOW).subscriptions["sub"].cursor.backlog() == 1
    assert bed.subscription().cursor.backlog() == 5
    assert await source.payloads(5) == [b"0", b"1", b"2", b"3", b"4"]
    backlogs = (await rest.get(f"{TOPICS}/shadow/stats"))["subscriptions"]
    assert {name: each["msgBacklog"] for name, each in backlogs.items()} == {"sub": 1}


async def test_a_latest_subscription_begins_behind_what_the_shadow_has(bed: Bed, rest: Rest, sender: Wire) -> None:
    await sender.publish(plain(b"before"))
    consumer = await bed.connect()
    await consumer.subscribe(SHADOW)
    await consumer.flow()
    await sender.publish(plain(b"after"))
    assert await consumer.payloads(1) == [b"after"]


async def test_consumers_seek_in_a_shadow(bed: Bed, rest: Rest, sender: Wire) -> None:
    consumer = await reading(bed)
    positions = await sender.publish(*(plain(b"%d" % number) for number in range(5)))
    await consumer.messages(5)
    await consumer.ask(Type.SEEK, consumer_id=0, message_id=message_id(positions[3]))
    consumer = await reading(bed)
    assert [each.position for each in await consumer.messages(2)] == positions[3:]


async def test_an_unacknowledged_message_of_a_shadow_topic_is_redelivered(bed: Bed, rest: Rest, sender: Wire) -> None:
    consumer = await reading(bed, type=Shared)
    (position,) = await sender.publish(plain(b"a"))
    await consumer.messages(1)
    await consumer.redeliver([position])
    assert (await consumer.message()).redelivery_count == 1


async def test_delayed_messages_wait(bed: Bed, rest: Rest, sender: Wire) -> None:
    consumer = await reading(bed, type=Shared)
    now = bed.broker.clock.now_ms()
    await sender.publish(plain(b"later", publish_time=now, deliver_at_time=now + 4000))
    await consumer.quiet(2)
    assert await consumer.payloads(1) == [b"later"]


@pytest.mark.parametrize("commit", [True, False])
async def test_transactions_of_the_source_are_seen_as_there(bed: Bed, rest: Rest, sender: Wire, commit: bool) -> None:
    consumer = await reading(bed)
    (before,) = await sender.publish(plain(b"before"))
    assert await consumer.payloads(1) == [b"before"]
    of = in_txn(txn(5))
    await sender.send(Type.SEND, plain(b"in", **of), producer_id=0, sequence_id=7, **of)
    await sender.expect(Type.SEND_RECEIPT)
    await sender.publish(plain(b"behind"))
    await consumer.quiet()
    assert await last_id(consumer) == before
    buffer = bed.topic().transactions
    assert buffer is not None
    buffer.end(txn(5), commit=commit, low_watermark=-1)
    assert await consumer.payloads(2 if commit else 1) == ([b"in", b"behind"] if commit else [b"behind"])
    await consumer.quiet()


async def test_a_shadow_is_compacted_for_itself(bed: Bed, rest: Rest, sender: Wire) -> None:
    await sender.publish(*(plain(b"%d" % number, partition_key="k") for number in range(5)))
    await rest.done("PUT", f"{TOPICS}/shadow/compaction")
    await trio.sleep(1)
    assert (await rest.get(f"{TOPICS}/shadow/compaction"))["status"] == "SUCCESS"
    consumer = await reading(bed, read_compacted=True)
    assert await consumer.payloads(1) == [b"4"]
    source = await reading(bed, TOPIC, read_compacted=True)
    assert await source.payloads(5) == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_shadow_has_the_schemas_of_its_source(bed: Bed, rest: Rest, sender: Wire) -> None:
    await sender.producer(producer_id=1, schema={"name": "s", "schema_data": b"", "type": pb.Schema.String})
    consumer = await bed.connect()
    record = {"name": "s", "schema_data": b'{"type":"record","name":"X","fields":[]}', "type": pb.Schema.Json}
    code, text = await consumer.refused(
        Type.SUBSCRIBE, topic=SHADOW, subscription="sub", subType=Shared, consumer_id=0, schema=record
    )
    assert (code, "exists schema type STRING" in text) == (pb.IncompatibleSchema, True)


# partitions


async def test_each_partition_shadows_the_one_of_the_same_number(bed: Bed) -> None:
    rest, source = rest_of(bed), "persistent://public/default/many"
    await rest.done("PUT", f"{TOPICS}/many/partitions", 2)
    shadow = {"partitions": 3, "properties": {"PULSAR.SHADOW_SOURCE": source}}
    assert (await rest.call("PUT", f"{TOPICS}/seen/partitions", shadow, content_type=METADATA)).status == 204
    await rest.done("PUT", f"{TOPICS}/many/shadowTopics", ["seen"])
    sender, consumers = await bed.connect(), []
    for index in range(2):
        await sender.producer(f"{source}-partition-{index}", index)
        consumers.append(await reading(bed, f"persistent://public/default/seen-partition-{index}"))
    for index in range(2):
        await sender.publish(plain(b"%d" % index), producer_id=index)
    for index, consumer in enumerate(consumers):
        assert await consumer.payloads(1) == [b"%d" % index]
    third = "persistent://public/default/seen-partition-2"
    late = await bed.connect()
    missing = {"topic": third, "subscription": "sub", "subType": Shared, "consumer_id": 0}
    code, text = await late.refused(Type.SUBSCRIBE, **missing)
    assert (code, text.endswith("Managed ledger not found")) == (pb.PersistenceError, True)
    await rest.done("POST", f"{TOPICS}/many/partitions", 3)
    await sender.producer(f"{source}-partition-2", 2)
    late = await reading(bed, third)
    await sender.publish(plain(b"2"), producer_id=2)
    assert await late.payloads(1) == [b"2"]


# the source's ledgers


async def test_the_source_keeps_what_a_shadow_has_consumed(bed: Bed, rest: Rest, sender: Wire) -> None:
    source = await reading(bed, TOPIC)
    consumer = await reading(bed)
    positions = await sender.publish(*(plain(b"%d" % number) for number in range(5)))
    await consumer.messages(5)
    await consumer.ack(positions[-1], type=Cumulative)
    for what in ("POST shadow/trim", "DELETE shadow/truncate"):
        method, url = what.split()
        assert (await rest.call(method, f"{TOPICS}/{url}")).status in (200, 204)
    assert await source.payloads(5) == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_shadow_loses_what_its_source_deletes(bed: Bed, rest: Rest, sender: Wire) -> None:
    source, consumer = await reading(bed, TOPIC), await reading(bed, type=Shared)
    positions = []
    for number in range(5):
        positions += await sender.publish(plain(b"%d" % number))
    await consumer.messages(5)
    await source.messages(5)
    await source.ack(positions[-1], type=Cumulative)
    await source.quiet()
    assert bed.topic().ledger.count == 1
    shadow = bed.topic(SHADOW)
    assert (shadow.ledger.count, shadow.subscriptions["sub"].cursor.backlog()) == (1, 1)
    await consumer.redeliver()
    assert [each.position for each in await consumer.messages(1)] == positions[4:]
    await consumer.quiet()
    newcomer = await reading(bed, name="new")
    assert await newcomer.payloads(1) == [b"4"]


async def test_a_shadow_that_was_not_told_loses_it_too(bed: Bed, rest: Rest, sender: Wire) -> None:
    await rest.done("DELETE", f"{TOPICS}/t/shadowTopics")
    consumer, source = await reading(bed), await reading(bed, TOPIC)
    positions = [*await sender.publish(plain(b"0"))]
    for number in range(1, 5):
        positions += await sender.publish(plain(b"%d" % number))
    await source.messages(5)
    await source.ack(positions[-1], type=Cumulative)
    await source.quiet()
    assert await consumer.payloads(1) == [b"4"]
    await consumer.quiet()


async def test_a_terminated_source_ends_no_shadow(bed: Bed, rest: Rest, sender: Wire) -> None:
    consumer = await reading(bed)
    (position,) = await sender.publish(plain(b"a"))
    await consumer.messages(1)
    await consumer.ack(position)
    assert (await rest.call("POST", f"{TOPICS}/t/terminate")).status == 200
    await consumer.quiet()
    status, reason = await rest.refused("POST", f"{TOPICS}/shadow/terminate")
    assert (status, reason) == (409, "Terminate is not allowed on shadow topic.")


# creating, deleting, unloading and restarting


async def test_a_source_is_not_deleted_while_shadows_are_listed(bed: Bed, rest: Rest) -> None:
    text = f"Delete forbidden. Topic {TOPIC} is replicated to shadow topics."
    assert await rest.refused("DELETE", f"{TOPICS}/t") == (422, text)
    await rest.done("DELETE", f"{TOPICS}/t/shadowTopics")
    await rest.done("DELETE", f"{TOPICS}/t")


async def test_a_listed_shadow_is_in_use(bed: Bed, rest: Rest) -> None:
    text = "Topic has 1 client connected Including 0 consumers, 1 producers, and 0 replicators."
    assert await rest.refused("DELETE", f"{TOPICS}/shadow") == (412, text)
    await rest.done("DELETE", f"{TOPICS}/t/shadowTopics")
    await rest.done("DELETE", f"{TOPICS}/shadow")


async def test_a_shadow_of_nothing_is_not_served_until_there_is_a_source_again(
    bed: Bed, rest: Rest, sender: Wire
) -> None:
    consumer = await reading(bed)
    await sender.publish(plain(b"gone"))
    await consumer.messages(1)
    await rest.done("DELETE", f"{TOPICS}/t?force=true")
    await consumer.expect(Type.CLOSE_CONSUMER)
    subscribe = {"topic": SHADOW, "subscription": "sub", "subType": Shared, "consumer_id": 0}
    assert (await consumer.refused(Type.SUBSCRIBE, **subscribe))[0] == pb.PersistenceError
    assert SHADOW in await rest.get(TOPICS)
    assert (await rest.refused("GET", f"{TOPICS}/shadow/stats"))[0] == 404
    await rest.done("PUT", f"{TOPICS}/t")
    await listed(rest, SHADOW)
    again = await reading(bed)
    sender = await bed.connect()
    await sender.producer()
    await sender.publish(plain(b"new"))
    assert await again.payloads(1) == [b"new"]


async def test_a_shadow_of_nothing_can_be_deleted(bed: Bed, rest: Rest) -> None:
    await rest.done("DELETE", f"{TOPICS}/t?force=true")
    await rest.done("DELETE", f"{TOPICS}/shadow")
    assert await rest.get(TOPICS) == []


async def test_a_namespace_goes_with_source_and_shadow(bed: Bed, rest: Rest, sender: Wire) -> None:
    await sender.publish(plain(b"a"))
    await rest.done("DELETE", f"{NAMESPACES}/public/default?force=true")
    await rest.done("PUT", f"{NAMESPACES}/public/default")
    assert await rest.get(TOPICS) == []


async def test_listed_shadows_and_their_sources_are_not_deleted_as_unused(autojump_clock: object) -> None:
    config = Config(brokerDeleteInactiveTopicsEnabled=True, brokerDeleteInactiveTopicsMaxInactiveDurationSeconds=60)
    async with serving(config) as bed:
        rest = rest_of(bed)
        await rest.done("PUT", f"{TOPICS}/t")
        await make(rest)
        await listed(rest, SHADOW)
        await trio.sleep(300)
        assert await rest.get(TOPICS) == [SHADOW, TOPIC]
        await rest.done("DELETE", f"{TOPICS}/t/shadowTopics")
        await trio.sleep(300)
        assert TOPIC not in await rest.get(TOPICS)


async def test_deleting_a_shadow_deletes_no_message(bed: Bed, rest: Rest, sender: Wire) -> None:
    await sender.publish(plain(b"a"))
    await rest.done("DELETE", f"{TOPICS}/shadow?force=true")
    source = await reading(bed, TOPIC)
    assert await source.payloads(1) == [b"a"]
    await sender.publish(plain(b"b"))
    assert await source.payloads(1) == [b"b"]


async def test_topics_that_shadow_each_other_are_refused(bed: Bed, rest: Rest) -> None:
    await rest.done("DELETE", f"{TOPICS}/t?force=true")
    status, reason = await rest.refused("PUT", f"{TOPICS}/t", {"PULSAR.SHADOW_SOURCE": SHADOW})
    assert (status, reason.endswith("Managed ledger not found")) == (404, True)
    wire = await bed.connect()
    for topic in (TOPIC, SHADOW):
        subscribe = {"topic": topic, "subscription": "sub", "subType": Shared, "consumer_id": 0}
        assert (await wire.refused(Type.SUBSCRIBE, **subscribe))[0] == pb.PersistenceError
    for name in ("t", "shadow"):
        await rest.done("DELETE", f"{TOPICS}/{name}")
    assert await rest.get(TOPICS) == []


async def test_messages_come_again_after_the_source_is_unloaded(bed: Bed, rest: Rest) -> None:
    consumer = await reading(bed)
    for payload in (b"a", b"b"):
        sender = await bed.connect()
        await sender.producer()
        await sender.publish(plain(payload))
        assert await consumer.payloads(1) == [payload]
        await rest.done("PUT", f"{TOPICS}/t/unload")


async def test_a_topic_with_messages_stays_what_it_is(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        rest, sender = rest_of(bed), await bed.connect()
        await rest.done("PUT", f"{TOPICS}/other")
        await sender.producer()
        await sender.publish(plain(b"mine"))
        await rest.done("PUT", f"{TOPICS}/t/properties", {"PULSAR.SHADOW_SOURCE": TOPIC.replace("/t", "/other")})
    async with serving(data=tmp_path) as bed:
        consumer = await reading(bed, TOPIC)
        assert await consumer.payloads(1) == [b"mine"]


async def test_all_of_it_is_there_after_a_restart(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        rest, sender = rest_of(bed), await bed.connect()
        await sender.producer()
        await make(rest)
        await listed(rest, SHADOW)
        consumer = await reading(bed, type=Shared)
        positions = await sender.publish(*(plain(b"%d" % number) for number in range(4)))
        await consumer.messages(4)
        await consumer.ack(positions[0], positions[2])
    async with serving(data=tmp_path) as bed:
        consumer = await reading(bed, type=Shared)
        assert [each.position for each in await consumer.messages(2)] == [positions[1], positions[3]]
        sender = await bed.connect()
        await sender.producer()
        await sender.publish(plain(b"new"))
        assert await consumer.payloads(1) == [b"new"]
        await consumer.ack(positions[1], positions[3])
        assert bed.topic(SHADOW).subscriptions["sub"].cursor.backlog() == 1


async def test_a_source_that_was_trimmed_before_a_restart(tmp_path: Path) -> None:
    async with serving(SMALL_LEDGERS, data=tmp_path) as bed:
        rest, sender = rest_of(bed), await bed.connect()
        await sender.producer()
        await make(rest)
        consumer, source = await reading(bed), await reading(bed, TOPIC)
        await rest.done("PUT", f"{TOPICS}/shadow/unload")
        positions = [*await sender.publish(plain(b"0"))]
        for number in range(1, 5):
            positions += await sender.publish(plain(b"%d" % number))
        await source.messages(5)
        await source.ack(positions[-1], type=Cumulative)
        assert bed.topic().ledger.count == 1
    async with serving(SMALL_LEDGERS, data=tmp_path) as bed:
        consumer = await reading(bed)
        assert [each.position for each in await consumer.messages(1)] == positions[-1:]
        await consumer.ack(positions[-1])
        assert bed.topic(SHADOW).subscriptions["sub"].cursor.backlog() == 0
