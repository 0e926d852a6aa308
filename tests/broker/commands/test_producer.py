"""PRODUCER and CLOSE_PRODUCER.

Order of the checks of PRODUCER: of several errors, the client gets the first one in the order of P-01.
"""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.config.profile import PULSAR_4_0
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.auth.secured import by_token
from tests.broker.commands.authorized import connecting, grant
from tests.broker.commands.limits import NO_MORE_PRODUCERS, namespace_says
from tests.broker.commands.refusals import JAVA, refused_producer
from tests.broker.commands.schema import AVRO, ONE, REFUSED, STRING, schema
from tests.broker.held import HeldStorage
from tests.broker.wire import TOPIC, Bed, Shared, Type, Wire, frame_of, plain, serving

TAKEN = f"{JAVA}NamingException: Producer with name 'p' is already connected to topic '{TOPIC}'"


@pytest.mark.req("P-02")
async def test_names_are_made_for_those_without(bed: Bed, wire: Wire) -> None:
    other = await bed.connect()
    names = [(await w.producer(producer_id=i)).producer_name for w in (wire, other) for i in range(3)]
    assert names == [f"standalone-0-{i}" for i in range(6)]


@pytest.mark.req("P-05")
async def test_a_new_producer_gets_its_name_schema_version_and_last_sequence_id(wire: Wire) -> None:
    success = await wire.producer(producer_name="mine")
    assert success.producer_name == "mine"
    assert success.producer_ready
    assert success.last_sequence_id == -1
    assert success.HasField("schema_version")
    assert success.schema_version == b""
    assert not success.HasField("topic_epoch")


@pytest.mark.req("P-02")
async def test_a_name_is_taken_once_on_a_connection_and_nobody_is_asked(wire: Wire) -> None:
    await wire.producer(producer_name="p")
    assert await refused_producer(wire, 1, producer_name="p", epoch=5) == (pb.ProducerBusy, TAKEN)
    await wire.quiet()
    await wire.producer(f"{TOPIC}2", 2, producer_name="p")


@pytest.mark.req("P-02")
@pytest.mark.parametrize("epoch", [0, 1, 100])
async def test_a_living_owner_keeps_its_name(bed: Bed, wire: Wire, epoch: int) -> None:
    await wire.producer(producer_name="p")
    other = await bed.connect()
    await other.write(other.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0, producer_name="p", epoch=epoch))
    await wire.expect(Type.PING)
    await other.quiet(4.9)
    await wire.send(Type.PONG)
    refused = await other.reply(1)
    assert (refused.error.error, refused.error.message) == (pb.ProducerBusy, TAKEN)
    await wire.publish(plain(b"still mine"))


@pytest.mark.req("P-02", "W-12")
async def test_a_dead_owner_loses_its_name_after_five_seconds(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="p")
    other = await bed.connect()
    started = bed.broker.clock.monotonic()
    success = await other.producer(producer_name="p")
    assert 5 <= bed.broker.clock.monotonic() - started < 5.5
    assert success.producer_ready
    assert [received.command.type for received in await wire.closed()] == [Type.PING]
    await other.publish(plain(b"mine now"))


@pytest.mark.req("P-02")
async def test_an_owner_that_leaves_while_it_is_asked(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="p")
    other = await bed.connect()
    await other.write(other.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0, producer_name="p"))
    await wire.expect(Type.PING)
    await wire.aclose()
    assert (await other.reply(1, within=1)).type == Type.PRODUCER_SUCCESS


@pytest.mark.req("P-02")
async def test_a_newcomer_that_leaves_while_the_owner_is_asked(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="p")
    other = await bed.connect()
    await other.write(other.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0, producer_name="p"))
    await wire.expect(Type.PING)
    await other.aclose()
    await wire.closed()  # the owner never answered the PING
    third = await bed.connect()
    assert (await third.producer(producer_name="p")).producer_ready


@pytest.mark.req("P-02")
@pytest.mark.serving(Config(connectionLivenessCheckTimeoutMillis=0))
async def test_without_a_liveness_check_the_owner_keeps_its_name(bed: Bed) -> None:
    wire, other = await bed.connect(), await bed.connect()
    await wire.producer(producer_name="p")
    assert await refused_producer(other, producer_name="p") == (pb.ProducerBusy, TAKEN)
    await wire.quiet()


@pytest.mark.req("P-03")
async def test_a_living_producer_id_is_answered_again(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="p")
    for fields in ({}, {"producer_name": "q"}, {"topic": f"{TOPIC}2"}, {"producer_name": "p", "epoch": 3}):
        assert (await wire.producer(**fields)).producer_name == "p"
    assert bed.broker.topics.names("public/default") == [TOPIC]


@pytest.mark.req("P-03")
async def test_a_producer_id_that_is_being_created_is_refused(wire: Wire) -> None:
    both = [wire.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0, producer_name=name) for name in "pq"]
    await wire.write(b"".join(both))
    second = await wire.expect(Type.ERROR)
    assert (second.request_id, second.error) == (2, pb.ServiceNotReady)
    assert second.message == "Producer is already present on the connection"
    assert (await wire.expect(Type.PRODUCER_SUCCESS)).producer_name == "p"


@pytest.mark.req("P-03")
async def test_an_id_is_free_again_after_a_failure_and_after_closing(wire: Wire) -> None:
    await wire.producer(producer_name="p")
    await refused_producer(wire, 1, producer_name="p")
    await wire.producer(producer_id=1, producer_name="q")
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=1)
    assert (await wire.producer(producer_id=1, producer_name="r")).producer_name == "r"


@pytest.mark.req("P-01")
@pytest.mark.parametrize("topic", ["http://public/default/t", "persistent://public/t", ""])
async def test_a_producer_of_a_name_that_is_no_topic_is_refused(wire: Wire, topic: str) -> None:
    code, text = await refused_producer(wire, topic=topic)
    assert code == pb.InvalidTopicName
    assert text.startswith("Invalid topic name: ")


@pytest.mark.req("P-01")
async def test_a_producer_in_an_absent_namespace_is_refused(wire: Wire) -> None:
    code, text = await refused_producer(wire, topic="persistent://public/none/t")
    assert code == pb.ServiceNotReady
    assert "not served by this instance" in text


@pytest.mark.req("P-01", "B-40")
@pytest.mark.serving(Config(allowAutoTopicCreation=False))
async def test_a_producer_of_a_topic_that_may_not_be_created_is_refused(bed: Bed) -> None:
    code, text = await refused_producer(await bed.connect())
    assert (code, text) == (pb.TopicNotFound, f"Topic not found {TOPIC}")
    assert not bed.broker.topics.exists(TopicName.parse(TOPIC))


@pytest.mark.req("B-36")
async def test_the_parent_of_partitions_takes_no_producer(bed: Bed, wire: Wire) -> None:
    bed.broker.topics.create_partitions(TopicName.parse(TOPIC), 2)
    code, text = await refused_producer(wire)
    assert code == pb.NotAllowedError
    assert text == f"Found partitioned metadata for non-partitioned topic: {TOPIC}"
    code, _ = await refused_producer(wire, topic=f"{TOPIC}-partition-2")
    assert code == pb.TopicNotFound
    await wire.producer(f"{TOPIC}-partition-1")


@pytest.mark.req("B-36")
@pytest.mark.parametrize("auto", [True, False])
async def test_the_parent_of_partitions_is_a_topic_of_older_releases_that_clients_may_create(auto: bool) -> None:
    async with serving(Config(allowAutoTopicCreation=auto), profile=PULSAR_4_0) as bed:
        bed.broker.topics.create_partitions(TopicName.parse(TOPIC), 2)
        wire = await bed.connect()
        if auto:
            await wire.producer()
        else:
            assert await refused_producer(wire) == (pb.TopicNotFound, f"Topic not found {TOPIC}")


@pytest.mark.req("B-36")
async def test_a_partition_without_its_parent_is_refused(wire: Wire) -> None:
    code, text = await refused_producer(wire, topic=f"{TOPIC}-partition-0")
    assert code == pb.NotAllowedError
    assert "partition" in text.lower()


@pytest.mark.req("P-01")
@pytest.mark.serving(Config(maxProducersPerTopic=1))
async def test_a_topic_takes_only_so_many_producers(wire: Wire) -> None:
    await wire.producer()
    code, text = await refused_producer(wire, 1)
    assert code == pb.ProducerBusy
    assert "reached max producers limit" in text
    await wire.producer(f"{TOPIC}2", 2)


@pytest.mark.serving(Config(maxProducersPerTopic=1))
async def test_producers_of_replicators_are_not_counted(wire: Wire) -> None:
    for number in range(2):
        await wire.producer(producer_id=number, producer_name=f"pulsar.repl.c{number}")
    await wire.producer(producer_id=2, producer_name="pulsar.replx")
    assert (await refused_producer(wire, 3, producer_name="p"))[0] == pb.ProducerBusy


@pytest.mark.req("P-09")
async def test_metadata_of_a_producer_may_be_so_large(wire: Wire) -> None:
    await wire.producer(metadata=[{"key": "k", "value": "v" * 1023}])
    code, text = await refused_producer(
        wire, 1, metadata=[{"key": "k", "value": "v" * 600}, {"key": "l", "value": "v" * 423}]
    )
    assert (code, text) == (pb.MetadataError, "metadata has a max size of 1 Kb")


@pytest.mark.req("P-08")
async def test_an_initial_subscription_begins_with_the_first_message(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    await wire.publish(plain(b"before"))
    for producer_id in (1, 2):
        await wire.producer(producer_id=producer_id, initial_subscription_name="init")
    await wire.producer(producer_id=3, initial_subscription_name="")
    assert list(bed.topic().subscriptions) == ["init"]
    await wire.subscribe(name="init")
    await wire.flow()
    assert await wire.payloads(1) == [b"before"]


@pytest.mark.req("P-08")
@pytest.mark.serving(Config(allowAutoSubscriptionCreation=False))
async def test_an_initial_subscription_may_not_be_created(wire: Wire) -> None:
    code, text = await refused_producer(wire, initial_subscription_name="init")
    assert code == pb.NotAllowedError
    assert "initial subscription" in text
    await wire.producer()


async def test_closing_twice_and_closing_what_never_was(wire: Wire) -> None:
    await wire.producer()
    for producer_id in (0, 0, 99):
        await wire.ask(Type.CLOSE_PRODUCER, producer_id=producer_id)


async def test_a_close_comes_after_the_receipts(store: HeldStorage, wire: Wire) -> None:
    await wire.producer()
    store.holding = True
    await wire.write(wire.sends(plain(b"a"), plain(b"b")))
    await wire.quiet()
    await wire.write(wire.numbered(Type.CLOSE_PRODUCER, producer_id=0) + frame_of(Type.PING))
    await wire.expect(Type.PONG)
    await wire.quiet()
    store.release()
    await wire.receipts(2)
    await wire.expect(Type.SUCCESS)


async def test_a_close_behind_its_producer(wire: Wire) -> None:
    create = wire.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0)
    await wire.write(create + wire.numbered(Type.CLOSE_PRODUCER, producer_id=0))
    assert (await wire.expect(Type.SUCCESS)).request_id == 2
    assert (await wire.expect(Type.PRODUCER_SUCCESS)).request_id == 1


async def test_a_send_behind_its_producer_closes(wire: Wire) -> None:
    await wire.write(wire.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0) + wire.sends(plain(b"x")))
    await wire.closed()


@pytest.mark.req("B-50", "W-04", "W-11")
@pytest.mark.parametrize("version", [4, 5])
async def test_only_clients_since_v5_are_told_of_a_close(bed: Bed, version: int) -> None:
    old = await bed.connect(version)
    await old.producer()
    await old.subscribe(type=Shared)
    await old.subscribe(type=Shared, consumer_id=1)
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    if version < 5:
        assert await old.closed() == []
    else:
        closed = sorted([(await old.next()).command.type for _ in range(3)])
        assert closed == [Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER, Type.CLOSE_CONSUMER]
        await old.alive()
    other = await bed.connect()
    await other.producer()
    assert (await other.publish(plain(b"x")))[0] == Position(other_ledger(bed), 0)


def other_ledger(bed: Bed) -> int:
    topic = bed.topic()
    return topic.ledger.last_confirmed.ledger_id


NO_GRANT = (pb.AuthorizationError, "Client is not authorized to Produce")


@pytest.mark.req("P-01")
@pytest.mark.serving(by_token(allowAutoTopicCreation=False))
async def test_the_name_comes_first_then_the_grants_then_the_id_then_the_topic(bed: Bed) -> None:
    bed.broker.topics.create(TopicName.parse(TOPIC))
    bed.broker.metadata.put_namespace("public/closed", dict(bed.broker.metadata.namespaces["public/default"]))
    grant(bed, "me", "produce")
    wire = await bed.connect(**connecting("me"))
    await wire.producer(producer_name="first")
    absent: dict[str, Any] = {"topic": f"{TOPIC}-absent", "initial_subscription_name": "s"}
    assert (await refused_producer(wire, 0, topic="persistent://public/closed"))[0] == pb.InvalidTopicName
    assert await refused_producer(wire, 0, topic="persistent://public/closed/t") == NO_GRANT
    assert await refused_producer(wire, 0, **absent) == NO_GRANT
    grant(bed, "me", "produce", "consume")
    assert (await wire.producer(**absent, producer_id=0)).producer_name == "first"
    assert (await refused_producer(wire, 1, **absent))[0] == pb.TopicNotFound


@pytest.mark.req("P-01")
async def test_limits_of_a_topic_come_before_the_schema_and_the_initial_subscription(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="taken", schema=schema(AVRO, ONE), encrypted=True)
    await wire.subscribe(name="late")
    await wire.publish(plain(b"backlog"))
    topic = bed.topic()
    namespace_says(
        bed,
        max_producers_per_topic=1,
        backlog_quota_map={"destination_storage": {"limitSize": 0, "limitTime": -1, "policy": "producer_exception"}},
        encryption_required=True,
        autoSubscriptionCreationOverride={"allowAutoSubscriptionCreation": False},
    )
    wrong: dict[str, Any] = {
        "producer_name": "taken",
        "schema": schema(STRING),
        "initial_subscription_name": "initial",
    }
    assert await refused_producer(wire, 1, **wrong) == NO_MORE_PRODUCERS
    namespace_says(bed, max_producers_per_topic=0)
    assert (await refused_producer(wire, 1, **wrong))[0] == pb.ProducerBlockedQuotaExceededException
    namespace_says(bed, backlog_quota_map={})
    assert await refused_producer(wire, 1, **wrong) == (pb.MetadataError, f"Encryption is required in {TOPIC}")
    wrong["encrypted"] = True
    code, text = await refused_producer(wire, 1, **wrong)
    assert (code, text.startswith(REFUSED)) == (pb.IncompatibleSchema, True)
    wrong["schema"] = schema(AVRO, ONE)
    code, text = await refused_producer(wire, 1, **wrong)
    assert (code, "initial subscription" in text) == (pb.NotAllowedError, True)
    assert list(topic.subscriptions) == ["late"]
    namespace_says(bed, autoSubscriptionCreationOverride={"allowAutoSubscriptionCreation": True})
    code, text = await refused_producer(wire, 1, **wrong)
    assert (code, text.startswith(f"{JAVA}NamingException")) == (pb.ProducerBusy, True)
    assert list(topic.subscriptions) == ["late", "initial"]  # created before the check of the producer's name
