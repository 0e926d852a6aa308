"""Creation, unloading, loading and deletion of topics, and topics after a restart of the broker."""

from __future__ import annotations

import pytest
import trio.testing

from pulsarium.broker.config import Config
from pulsarium.broker.config.keys import APPEND_INDEX
from pulsarium.broker.model.cursor.records import CursorProperties
from pulsarium.broker.model.errors import TopicHasClientsError, TopicNotFoundError
from pulsarium.broker.model.ledger.interceptors import index_of
from pulsarium.broker.session.session import sessions_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.wire import TOPIC, Bed, Earliest, Exclusive, Individual, Type, Wire, message_id, plain, serving

NAME = TopicName.parse(TOPIC)
LOOSE = "non-persistent://public/default/t"


@pytest.mark.req("B-40")
async def test_topics_are_created_by_their_first_user(bed: Bed, wire: Wire) -> None:
    await wire.producer(TOPIC)
    await wire.subscribe(f"{TOPIC}2", consumer_id=1)
    await wire.producer("short-name", 2)
    await wire.producer(LOOSE, 3)
    assert bed.broker.topics.names("public/default", non_persistent=True) == [
        "persistent://public/default/short-name",
        TOPIC,
        f"{TOPIC}2",
        LOOSE,
    ]


@pytest.mark.req("B-50", "B-13")
async def test_an_unloaded_topic_comes_back_as_it_was(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.flow()
    positions = await sender.publish(*[plain(b"%d" % i) for i in range(5)])
    await wire.messages(5)
    await wire.ack(positions[0], positions[3])
    bed.broker.topics.unload(NAME)
    closed = await wire.expect(Type.CLOSE_CONSUMER)
    assert (closed.consumer_id, closed.request_id) == (0, 2**64 - 1)
    await sender.expect(Type.CLOSE_PRODUCER)
    assert bed.broker.topics.loaded == {}
    assert bed.broker.topics.exists(NAME)
    await wire.flow()  # ignored, because the consumer is closed
    await wire.subscribe()
    await wire.flow()
    assert [message.position for message in await wire.messages(3)] == [positions[i] for i in (1, 2, 4)]
    await sender.producer()
    (next_position,) = await sender.publish(plain(b"5"))
    assert next_position.ledger_id > positions[0].ledger_id  # a new ledger, as after a change of owner
    assert (await wire.message()).position == next_position


@pytest.mark.req("B-50")
async def test_unloading_what_is_not_loaded_or_not_there(bed: Bed, sender: Wire) -> None:
    for _ in range(2):
        bed.broker.topics.unload(NAME)
    with pytest.raises(TopicNotFoundError):
        bed.broker.topics.unload(TopicName.parse(f"{TOPIC}-absent"))


@pytest.mark.req("B-50")
async def test_messages_in_flight_survive_an_unload(store: HeldStorage, bed: Bed, wire: Wire) -> None:
    await wire.producer()
    store.holding = True
    await wire.write(wire.sends(plain(b"a"), plain(b"b")))
    await wire.quiet()
    bed.broker.topics.unload(NAME)
    await wire.expect(Type.CLOSE_PRODUCER)
    store.release()
    assert len(await wire.receipts(2)) == 2
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    assert await wire.payloads(2) == [b"a", b"b"]


@pytest.mark.req("B-50")
async def test_a_subscribe_that_an_unload_overtakes(store: HeldStorage, bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_id=9)
    store.holding = True
    await wire.write(
        wire.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="s", subType=Exclusive, consumer_id=0)
        + wire.numbered(Type.PRODUCER, topic=TOPIC, producer_id=1)
    )
    await wire.quiet()
    bed.broker.topics.unload(NAME)
    store.release()
    answers = [received.command for received in await wire.rest()]
    refused = [base.error for base in answers if base.type == Type.ERROR]
    assert [error.error for error in refused] == [pb.ServiceNotReady] * 2
    await wire.subscribe(name="s")
    await wire.flow()
    await wire.producer(producer_id=1)
    await wire.publish(plain(b"x"), producer_id=1)
    assert await wire.payloads(1) == [b"x"]


async def test_a_topic_with_clients_is_deleted_only_by_force(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await sender.publish(plain(b"x"))
    with pytest.raises(TopicHasClientsError, match="2 clients connected Including 1 consumers, 1 producers"):
        bed.broker.topics.delete(NAME, force=False)
    bed.broker.topics.delete(NAME, force=True)
    await wire.expect(Type.CLOSE_CONSUMER)
    await sender.expect(Type.CLOSE_PRODUCER)
    assert not bed.broker.topics.exists(NAME)
    with pytest.raises(TopicNotFoundError):
        bed.broker.topics.delete(NAME, force=True)
    await wire.subscribe(initialPosition=Earliest)  # a new topic, without the old message
    await wire.flow()
    await wire.quiet()


async def test_a_deletion_disconnects_consumers_before_producers(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe()
    bed.broker.topics.delete(NAME, force=True)
    await wire.expect(Type.CLOSE_CONSUMER)
    await wire.expect(Type.CLOSE_PRODUCER)


async def test_a_deleted_topic_stays_deleted(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer(schema={"name": "", "schema_data": b"", "type": pb.Schema.Type.Value("String")})
        await wire.subscribe()
        positions = await wire.publish(plain(b"x"))
        await wire.ack(*positions)
        assert store.entries
        bed.broker.topics.delete(NAME, force=True)
        await wire.rest()
    assert store.entries == {}
    assert not [path for path in store.metadata if "/persistent/t" in path or path.startswith("/schemas")]
    async with serving(storage=store) as bed:
        assert not bed.broker.topics.exists(NAME)


@pytest.mark.serving(Config(maxPendingPublishRequestsPerConnection=4))
async def test_sends_in_flight_when_their_topic_is_deleted(store: HeldStorage, bed: Bed, wire: Wire) -> None:
    """The broker accounts for these messages, so that the connection may publish as many messages as before."""
    for _ in range(5):
        await wire.producer()
        store.holding = True
        await wire.write(wire.sends(plain(b"a"), plain(b"b")))
        await wire.quiet()
        bed.broker.topics.delete(NAME, force=True)
        store.release()
        await wire.rest()
    (session,) = sessions_of(bed.broker)
    assert session.gate.unanswered == 0


@pytest.mark.req("B-36")
async def test_partitions_are_topics_and_may_grow(bed: Bed, wire: Wire) -> None:
    topics = bed.broker.topics
    topics.create_partitions(NAME, 2, {"a": "b"})
    await wire.subscribe(f"{TOPIC}-partition-0")
    topics.create_partitions(NAME, 4)
    assert topics.names("public/default") == [f"{TOPIC}-partition-{i}" for i in range(4)]
    assert not topics.exists(NAME)
    await wire.producer(f"{TOPIC}-partition-3")
    await wire.publish(plain(b"early"))
    await wire.subscribe(f"{TOPIC}-partition-3", consumer_id=1)  # created with the partition, as on partition 0
    await wire.flow(consumer_id=1)
    assert await wire.payloads(1) == [b"early"]


@pytest.mark.req("B-36")
async def test_topics_of_any_name_outlive_the_broker(autojump_clock: object) -> None:
    store = HeldStorage()
    odd = ["t", "with space", "with%2Fslash", "100%", "ü", "a-partition-1-b"]
    names = [str(TopicName.parse(f"persistent://public/default/{name}")) for name in odd]
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        bed.broker.topics.create_partitions(TopicName.parse(f"{TOPIC}-parts"), 2)
        for number, name in enumerate(names):
            await wire.producer(name, number)
            await wire.publish(plain(name.encode()), producer_id=number)
        await wire.producer(LOOSE, 99)
        known = bed.broker.topics.names("public/default")
    async with serving(storage=store) as bed:
        assert bed.broker.topics.names("public/default", non_persistent=True) == known
        assert bed.broker.metadata.partitions_of(TopicName.parse(f"{TOPIC}-parts")) == 2
        assert bed.broker.topics.loaded == {}  # a topic is loaded at its first use
        wire = await bed.connect()
        for number, name in enumerate(names):
            await wire.subscribe(name, consumer_id=number, initialPosition=Earliest)
            await wire.flow(consumer_id=number)
            assert await wire.payloads(1) == [name.encode()]


async def test_a_cursor_that_cannot_be_kept_costs_no_other_one(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        for consumer_id, name in enumerate(("bad", "good")):
            await wire.subscribe(name=name, consumer_id=consumer_id)
        positions = await wire.publish(plain(b"0"), plain(b"1"))
        await wire.ack(positions[0], consumer_id=0)
        ids = [message_id(positions[1])]
        for consumer_id in (0, 1):  # these ACKs ask for no answer
            await wire.send(Type.ACK, consumer_id=consumer_id, ack_type=Individual, message_id=ids)
        await wire.alive()
        bed.subscription("bad").cursor.properties = CursorProperties({"no long": 2**64})
    async with serving(storage=store) as bed:
        backlogs = {name: each.cursor.backlog() for name, each in bed.topic().subscriptions.items()}
        assert backlogs == {"bad": 1, "good": 1}


async def test_ids_are_never_used_again(autojump_clock: object) -> None:
    store = HeldStorage()
    seen: list[int] = []
    for _ in range(3):
        async with serving(storage=store) as bed:
            wire = await bed.connect()
            await wire.producer()
            seen += [position.ledger_id for position in await wire.publish(plain(b"x"))]
            bed.broker.topics.delete(NAME, force=True)
            await wire.rest()
    assert seen == sorted(set(seen))


async def test_the_namespaces_of_a_standalone_are_there(autojump_clock: object) -> None:
    store = HeldStorage()
    for _ in range(2):
        async with serving(storage=store) as bed:
            assert set(bed.broker.metadata.tenants) >= {"public", "pulsar"}
            assert set(bed.broker.metadata.namespaces) >= {"public/default", "pulsar/system"}
            bed.broker.metadata.put_namespace("public/mine", {"replication_clusters": ["standalone"]})
            wire = await bed.connect()
            await wire.producer("persistent://public/mine/t")


@pytest.mark.parametrize(
    ("config", "topic"),
    [(Config(enablePersistentTopics=False), TOPIC), (Config(enableNonPersistentTopics=False), LOOSE)],
)
async def test_a_kind_of_topic_may_be_off(autojump_clock: object, config: Config, topic: str) -> None:
    async with serving(config) as bed:
        wire = await bed.connect()
        code, _ = await wire.refused(Type.PRODUCER, topic=topic, producer_id=0)
        assert code == pb.NotAllowedError
        await wire.producer(TOPIC if topic == LOOSE else LOOSE, 1)


@pytest.mark.req("B-37")
async def test_a_loose_topic_keeps_nothing(bed: Bed, wire: Wire) -> None:
    await wire.subscribe(LOOSE)
    topic = bed.broker.topics.find(TopicName.parse(LOOSE))
    assert list(topic.subscriptions) == ["sub"]
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    assert list(topic.subscriptions) == []
    bed.broker.topics.unload(TopicName.parse(LOOSE))
    assert not bed.broker.topics.exists(TopicName.parse(LOOSE))


async def test_the_stamp_of_a_topic_goes_on_after_an_unload(autojump_clock: object) -> None:
    index = ("org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor",)
    config = Config(brokerEntryMetadataInterceptors=index, exposingBrokerEntryMetadataToClientEnabled=True)
    store = HeldStorage()
    stamps: list[int] = []
    for _ in range(2):
        async with serving(config, storage=store) as bed:
            wire = await bed.connect(flags=["supports_broker_entry_metadata"])
            for entries in ([plain(b"a")], [plain(b"b"), b"\0\0\0\3xyz"]):
                await wire.producer()
                await wire.publish(*entries, num_messages=1)
                bed.broker.topics.unload(NAME)
                await wire.expect(Type.CLOSE_PRODUCER)
            ledger = bed.topic().ledger
            stamp = pb.BrokerEntryMetadata.FromString(ledger.read_now(ledger.last_confirmed)[6:8])
            stamps.append(stamp.index)
    assert stamps == [2, 5]


@pytest.mark.req("S415-31")
@pytest.mark.serving(Config(brokerEntryMetadataInterceptors=(APPEND_INDEX,)))
async def test_a_topic_that_is_unloaded_while_messages_are_on_their_way(store: HeldStorage, bed: Bed) -> None:
    """A subscription from the earliest message receives these messages, and their indexes are not used again."""
    sender, wire = await bed.connect(), await bed.connect()
    await sender.producer()
    store.holding = True
    await sender.write(sender.sends(plain(b"a"), plain(b"b")))
    await sender.alive()
    bed.broker.topics.unload(NAME)
    topic = bed.topic()
    subscription = topic.subscribe("sub", earliest=True)
    store.release()
    await sender.expect(Type.CLOSE_PRODUCER)
    assert len(await sender.receipts(2)) == 2
    assert subscription.cursor.backlog() == 2
    await sender.producer()
    await sender.publish(plain(b"c"))
    assert [index_of(entry) for entry in topic.ledger.all_after(topic.ledger.first_position())] == [0, 1, 2]
    await wire.subscribe()
    await wire.flow()
    assert await wire.payloads(3) == [b"a", b"b", b"c"]


@pytest.mark.serving(Config(brokerEntryMetadataInterceptors=(APPEND_INDEX,)))
async def test_an_index_that_was_given_to_what_could_not_be_kept_is_given_again(store: HeldStorage, bed: Bed) -> None:
    sender = await bed.connect()
    await sender.producer()
    await sender.publish(plain(b"a"))
    store.holding = True
    await sender.write(sender.sends(plain(b"b")))
    await sender.alive()
    store.fail()
    store.release()
    await trio.testing.wait_all_tasks_blocked()
    topic = bed.topic()
    again = await bed.connect()
    await again.producer()
    await again.publish(plain(b"c"))
    assert [index_of(entry) for entry in topic.ledger.all_after(topic.ledger.first_position())] == [0, 1]
