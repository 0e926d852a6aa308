"""SUBSCRIBE, UNSUBSCRIBE, CLOSE_CONSUMER."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.wire import (
    TOPIC,
    Bed,
    Earliest,
    Exclusive,
    Failover,
    KeyShared,
    Latest,
    Shared,
    Type,
    Wire,
    batch_of,
    frame_of,
    message_id,
    plain,
    serving,
)

LOOSE = "non-persistent://public/default/t"
EARLIEST = {"ledgerId": 2**64 - 1, "entryId": 2**64 - 1}
LATEST = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}
BUSY = (pb.ConsumerBusy, "Exclusive consumer is already connected")


async def ask(
    wire: Wire, name: str = "sub", type: int = Exclusive, consumer_id: int = 0, topic: str = TOPIC, **fields: Any
) -> tuple[int, str]:
    """Code and text of a refused SUBSCRIBE."""
    return await wire.refused(
        Type.SUBSCRIBE, topic=topic, subscription=name, subType=type, consumer_id=consumer_id, **fields
    )


def topic_of(bed: Bed) -> PersistentTopic:
    topic = bed.broker.topics.find(TopicName.parse(TOPIC))
    assert isinstance(topic, PersistentTopic)
    return topic


@pytest.fixture
async def five(wire: Wire) -> list[Position]:
    """A topic with four messages and a batch of three; their positions."""
    await wire.producer(producer_id=50)
    return await wire.publish(*[plain(b"%d" % i) for i in range(4)], batch_of(b"x", b"y", b"z"), producer_id=50)


# where a new subscription begins


@pytest.mark.req("B-13")
@pytest.mark.parametrize("type", [Exclusive, Shared, Failover])
@pytest.mark.parametrize(("start", "expected"), [(Earliest, 5), (Latest, 0), (None, 0)])
async def test_the_first_position(wire: Wire, five: list[Position], type: int, start: int, expected: int) -> None:
    fields = {} if start is None else {"initialPosition": start}
    await wire.subscribe(type=type, **fields)
    await wire.flow()
    if type == Failover:
        await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)
    messages = await wire.messages(expected)
    assert [message.position for message in messages] == five[:expected]
    await wire.quiet(2)
    (new,) = await wire.publish(plain(b"new"), producer_id=50)
    assert (await wire.message()).position == new


@pytest.mark.req("C-07")
async def test_a_start_id_says_nothing_to_a_durable_subscription(wire: Wire, five: list[Position]) -> None:
    await wire.subscribe(initialPosition=Earliest, start_message_id=message_id(five[3]))
    await wire.flow()
    assert len(await wire.messages(5)) == 5


@pytest.mark.req("B-14", "C-07")
@pytest.mark.parametrize(
    ("start", "initial", "first"),
    [
        (None, Latest, 5),
        (None, Earliest, 0),
        (EARLIEST, Latest, 0),
        (LATEST, Latest, 5),
        (0, Latest, 0),
        (2, Latest, 2),
        (4, Latest, 4),
        (5, Latest, 5),
        (99, Latest, 5),
    ],
)
async def test_the_first_position_of_a_reader(
    wire: Wire, five: list[Position], start: dict[str, int] | int | None, initial: int, first: int
) -> None:
    fields: dict[str, Any] = {"durable": False, "initialPosition": initial}
    if isinstance(start, int):
        start = {"ledgerId": five[0].ledger_id, "entryId": start}
    if start is not None:
        fields["start_message_id"] = start
    await wire.subscribe(**fields)
    await wire.flow()
    assert [message.position for message in await wire.messages(5 - first)] == five[first:]
    await wire.quiet()
    (new,) = await wire.publish(plain(b"new"), producer_id=50)
    assert (await wire.message()).position == new


@pytest.mark.req("B-14", "C-07")
async def test_a_reader_inside_a_batch_gets_all_of_it(wire: Wire, five: list[Position]) -> None:
    await wire.subscribe(durable=False, start_message_id=message_id(five[4], batch_index=1))
    await wire.flow()
    message = await wire.message()
    assert message.position == five[4]
    assert message.command.ack_set == []


@pytest.mark.req("B-14", "C-07")
async def test_readers_in_other_ledgers(bed: Bed, wire: Wire, five: list[Position]) -> None:
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await wire.expect(Type.CLOSE_PRODUCER)
    await wire.producer(producer_id=50)
    (sixth,) = await wire.publish(plain(b"6"), producer_id=50)
    assert sixth.ledger_id > five[0].ledger_id
    for number, (start, first) in enumerate([(five[4], 4), (Position(five[0].ledger_id, 99), 5), (sixth, 5)]):
        await wire.subscribe(name=f"r{number}", consumer_id=number, durable=False, start_message_id=message_id(start))
        await wire.flow(consumer_id=number)
        assert [message.position for message in await wire.messages(6 - first)] == [*five, sixth][first:]


@pytest.mark.req("B-14")
async def test_a_reader_is_gone_with_its_consumer(bed: Bed, wire: Wire, five: list[Position]) -> None:
    await wire.subscribe(durable=False, start_message_id=EARLIEST)
    assert list(topic_of(bed).subscriptions) == ["sub"]
    await wire.flow()
    await wire.ack(*[message.position for message in await wire.messages(3)])
    await wire.messages(2)
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    assert list(topic_of(bed).subscriptions) == []
    await wire.subscribe(durable=False, start_message_id=message_id(five[1]))  # its start counts again
    await wire.flow()
    assert (await wire.message()).position == five[1]


@pytest.mark.req("B-14", "C-07")
async def test_a_reader_that_is_there_keeps_its_place(bed: Bed, wire: Wire, five: list[Position]) -> None:
    await wire.subscribe(type=Shared, durable=False, start_message_id=EARLIEST)
    await wire.flow(2)
    await wire.messages(2)
    other = await bed.connect()
    await other.subscribe(type=Shared, durable=False, start_message_id=message_id(five[4]))
    await other.flow()
    assert [message.position for message in await other.messages(3)] == five[2:]


@pytest.mark.req("C-08")
async def test_a_subscription_may_begin_in_the_past(bed: Bed, wire: Wire) -> None:
    now = bed.broker.clock.now_ms()
    await wire.producer()
    ages = [3600, 120, 60, 10, 0]
    positions = await wire.publish(*[plain(b"x", publish_time=now - age * 1000) for age in ages])
    for number, (rollback, first) in enumerate([(100_000, 0), (121, 1), (61, 2), (30, 3), (1, 4)]):
        for durable in (True, False):
            fields = {"start_message_rollback_duration_sec": rollback, "durable": durable}
            await wire.subscribe(name=f"s{number}", consumer_id=number, **fields)
            await wire.flow(consumer_id=number)
            assert [message.position for message in await wire.messages(5 - first)] == positions[first:]
            await wire.quiet(0)
            await wire.ask(Type.CLOSE_CONSUMER, consumer_id=number)
            if durable:
                await wire.subscribe(name=f"s{number}", consumer_id=number)
                await wire.ask(Type.UNSUBSCRIBE, consumer_id=number)


# ids


@pytest.mark.req("C-01")
async def test_a_living_consumer_id_is_answered_again(bed: Bed, wire: Wire) -> None:
    await wire.subscribe()
    await wire.subscribe()
    await wire.subscribe(name="other")
    await wire.subscribe(topic=f"{TOPIC}2")
    assert list(topic_of(bed).subscriptions) == ["sub"]
    assert bed.broker.topics.names("public/default") == [TOPIC]


@pytest.mark.req("C-01")
async def test_a_consumer_id_that_is_being_created_is_refused(wire: Wire) -> None:
    both = [wire.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="s", subType=Shared, consumer_id=3) for _ in "ab"]
    await wire.write(b"".join(both))
    refused = await wire.expect(Type.ERROR)
    assert (refused.request_id, refused.error) == (2, pb.ServiceNotReady)
    assert refused.message == "Consumer is already present on the connection"
    assert (await wire.expect(Type.SUCCESS)).request_id == 1


@pytest.mark.req("C-01")
async def test_closing_frees_the_id(wire: Wire) -> None:
    await wire.subscribe()
    for consumer_id in (0, 0, 77):
        await wire.ask(Type.CLOSE_CONSUMER, consumer_id=consumer_id)
    await wire.subscribe(name="other")


async def test_permits_sent_behind_a_subscribe_are_lost(wire: Wire, five: list[Position]) -> None:
    await wire.write(
        wire.numbered(
            Type.SUBSCRIBE, topic=TOPIC, subscription="s", subType=Shared, consumer_id=0, initialPosition=Earliest
        )
        + frame_of(Type.FLOW, consumer_id=0, messagePermits=10)
    )
    await wire.expect(Type.SUCCESS)
    await wire.quiet()
    await wire.flow()
    await wire.messages(5)


# what it may not be


@pytest.mark.req("C-02", "B-40")
async def test_a_topic_that_may_not_be_created(wire: Wire) -> None:
    absent = (pb.TopicNotFound, f"Topic {TOPIC} does not exist")
    assert await ask(wire, force_topic_creation=False) == absent
    await wire.subscribe()
    await wire.subscribe(name="other", consumer_id=1, force_topic_creation=False)


@pytest.mark.req("C-02", "B-40")
async def test_a_broker_that_creates_nothing(autojump_clock: object) -> None:
    async with serving(Config(allowAutoTopicCreation=False)) as bed:
        wire = await bed.connect()
        assert await ask(wire) == (pb.TopicNotFound, f"Topic {TOPIC} does not exist")
        bed.broker.topics.create(TopicName.parse(TOPIC))
        await wire.subscribe()


@pytest.mark.req("C-03", "B-40")
async def test_a_subscription_that_may_not_be_created(autojump_clock: object) -> None:
    async with serving(Config(allowAutoSubscriptionCreation=False)) as bed:
        wire = await bed.connect()
        code, text = await ask(wire)
        assert code == pb.SubscriptionNotFound
        assert text == "Subscription sub does not exist"
        await wire.subscribe(name="reader", durable=False)
        await wire.subscribe(topic=LOOSE, consumer_id=1)
        topic_of(bed).subscribe("sub", earliest=True)
        await wire.subscribe(consumer_id=2)


@pytest.mark.req("C-06")
async def test_compacted_reading_is_for_one_consumer_of_a_stored_topic(wire: Wire) -> None:
    refusal = (pb.NotAllowedError, "readCompacted only allowed on failover or exclusive subscriptions")
    assert await ask(wire, type=Shared, read_compacted=True) == refusal
    assert await ask(wire, topic=LOOSE, read_compacted=True) == refusal
    await wire.subscribe(read_compacted=True)
    await wire.subscribe(name="other", type=Failover, consumer_id=1, read_compacted=True)


@pytest.mark.req("C-11")
async def test_subscriptions_may_have_almost_any_name(bed: Bed, wire: Wire) -> None:
    names = ["a/b", "a b", "a%2Fb", "ü", "x" * 300]
    for number, name in enumerate(names):
        await wire.subscribe(name=name, consumer_id=number)
    assert list(topic_of(bed).subscriptions) == names
    assert await ask(wire, "", consumer_id=99) == (pb.ProducerBusy, "Empty subscription name")


@pytest.mark.req("C-11")
async def test_names_may_be_verified_strictly(autojump_clock: object) -> None:
    async with serving(Config(strictlyVerifySubscriptionName=True)) as bed:
        wire = await bed.connect()
        for number, name in enumerate(["a:b", "a.b-c_d=e"]):
            await wire.subscribe(name=name, consumer_id=number)
        for name in ["a/b", "a b", "a%2Fb", "ü"]:
            code, text = await ask(wire, name, consumer_id=99)
            assert code == pb.ProducerBusy
            assert text.startswith("Please let the subscription only contains '/w(a-zA-Z_0-9)' or '_', the current")
            assert text.endswith(name)


async def test_types_may_be_disabled(autojump_clock: object) -> None:
    async with serving(Config(subscriptionTypesEnabled=frozenset({"Exclusive"}))) as bed:
        wire = await bed.connect()
        code, text = await ask(wire, type=Shared)
        assert (code, text) == (pb.NotAllowedError, f"Topic[{TOPIC}] doesn't support Shared sub type!")
        await wire.subscribe()


async def test_key_shared_is_refused_until_it_is_built(wire: Wire) -> None:
    code, _ = await ask(wire, type=KeyShared)
    assert code == pb.NotAllowedError
    await wire.alive()


@pytest.mark.req("B-36")
async def test_the_parent_of_partitions_takes_no_consumer(bed: Bed, wire: Wire) -> None:
    bed.broker.topics.create_partitions(TopicName.parse(TOPIC), 2)
    found = f"Found partitioned metadata for non-partitioned topic: {TOPIC}"
    assert await ask(wire) == (pb.NotAllowedError, found)
    await wire.subscribe(f"{TOPIC}-partition-1")
    code, _ = await ask(wire, topic=f"{TOPIC}-partition-2", consumer_id=1)
    assert code == pb.TopicNotFound


@pytest.mark.parametrize("topic", ["http://public/default/t", "persistent://public/t", ""])
async def test_a_topic_name_that_is_none(wire: Wire, topic: str) -> None:
    code, text = await ask(wire, topic=topic)
    assert code == pb.InvalidTopicName
    assert text.startswith("Invalid topic name: ")


async def test_metadata_may_be_so_large(wire: Wire) -> None:
    await wire.subscribe(metadata=[{"key": "k", "value": "v" * 1023}])
    code, _ = await ask(wire, consumer_id=1, metadata=[{"key": "k", "value": "v" * 1024}])
    assert code == pb.MetadataError


# several consumers


@pytest.mark.req("C-04", "B-01")
async def test_a_living_exclusive_consumer_stays(bed: Bed, wire: Wire) -> None:
    await wire.subscribe()
    other = await bed.connect()
    await other.write(other.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="sub", subType=Exclusive, consumer_id=0))
    await wire.expect(Type.PING)
    await other.quiet(4.9)
    await wire.send(Type.PONG)
    refused = (await other.reply(1)).error
    assert (refused.error, refused.message) == BUSY


@pytest.mark.req("C-04", "B-01")
async def test_even_the_connection_that_asks_is_asked(wire: Wire) -> None:
    await wire.subscribe()
    await wire.write(wire.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="sub", subType=Exclusive, consumer_id=1))
    await wire.expect(Type.PING)
    await wire.send(Type.PONG)
    refused = (await wire.reply(2)).error
    assert (refused.error, refused.message) == BUSY
    await wire.flow()
    await wire.alive()


@pytest.mark.req("C-04", "B-01", "W-12")
async def test_a_dead_exclusive_consumer_is_evicted(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    await wire.publish(plain(b"before"))
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    await wire.message()
    other = await bed.connect()
    started = bed.broker.clock.monotonic()
    await other.subscribe()
    assert 5 <= bed.broker.clock.monotonic() - started < 5.5
    assert [received.command.type for received in await wire.closed()] == [Type.PING]
    await other.flow()
    assert (await other.message()).payload == b"before"


@pytest.mark.req("C-04", "B-14")
@pytest.mark.parametrize("topic", [TOPIC, LOOSE])
async def test_what_goes_with_a_dead_consumer_is_made_anew(bed: Bed, wire: Wire, topic: str) -> None:
    await wire.subscribe(topic, durable=False)
    other = await bed.connect()
    await other.subscribe(topic, durable=False)  # five seconds later
    await other.flow()
    sender = await bed.connect()
    await sender.producer(topic)
    await sender.publish(plain(b"x"))
    assert await other.payloads(1) == [b"x"]


@pytest.mark.req("C-04")
async def test_two_that_wait_for_a_dead_one(bed: Bed, wire: Wire) -> None:
    await wire.subscribe()
    first, second = await bed.connect(), await bed.connect()
    for other in (first, second):
        await other.write(
            other.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="sub", subType=Exclusive, consumer_id=0)
        )
    await wire.expect(Type.PING)
    assert (await first.reply(1)).type == Type.SUCCESS
    await first.expect(Type.PING)  # now it is the first one's life that the second waits for
    await first.send(Type.PONG)
    assert (await second.reply(1)).error.error == pb.ConsumerBusy


@pytest.mark.req("C-04", "B-50")
async def test_a_topic_that_is_unloaded_while_an_owner_is_asked(bed: Bed, wire: Wire) -> None:
    await wire.subscribe()
    other = await bed.connect()
    await other.write(other.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="sub", subType=Exclusive, consumer_id=0))
    await wire.expect(Type.PING)
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await wire.expect(Type.CLOSE_CONSUMER)
    reply = await other.reply(1)  # after five seconds: the asked one is silent
    if reply.type == Type.ERROR:
        assert reply.error.error == pb.ServiceNotReady  # look it up again
        await other.subscribe()
    await other.producer()
    await other.flow()
    await other.publish(plain(b"x"))
    assert await other.payloads(1) == [b"x"]


@pytest.mark.req("C-05")
@pytest.mark.parametrize("first", [Exclusive, Shared, Failover])
@pytest.mark.parametrize("second", [Exclusive, Shared, Failover, KeyShared])
async def test_types_do_not_mix(bed: Bed, wire: Wire, first: int, second: int) -> None:
    if first == second or second == KeyShared:
        return
    await wire.subscribe(type=first)
    other = await bed.connect()
    names = [pb.CommandSubscribe.SubType.Name(type) for type in (first, second)]  # type: ignore[arg-type]
    code, text = await ask(other, type=second)
    assert code == pb.ConsumerBusy
    assert text == (
        f"Subscription is of different type. Active subscription type of '{names[0]}' is different than the "
        f"connecting consumer's type '{names[1]}'."
    )
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await other.subscribe(type=second)  # nobody is attached: the type may change


@pytest.mark.req("C-13")
@pytest.mark.parametrize(
    ("config", "text"),
    [
        (Config(maxConsumersPerSubscription=2), "Subscription reached max consumers limit"),
        (Config(maxConsumersPerTopic=2), "Topic reached max consumers limit"),
    ],
)
async def test_there_may_be_only_so_many(autojump_clock: object, config: Config, text: str) -> None:
    async with serving(config) as bed:
        wire = await bed.connect()
        for consumer_id in range(2):
            await wire.subscribe(type=Shared, consumer_id=consumer_id)
        assert await ask(wire, type=Shared, consumer_id=2) == (pb.ConsumerBusy, text)
        if config.maxConsumersPerTopic:
            assert await ask(wire, "other", consumer_id=2) == (pb.ConsumerBusy, text)
        await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
        await wire.subscribe(type=Shared, consumer_id=2)


# commits


@pytest.mark.req("B-13")
async def test_a_subscription_is_there_when_it_is_kept(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        store.holding = True
        await wire.write(wire.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="s", subType=Shared, consumer_id=0))
        await wire.quiet()
        store.release()
        await wire.expect(Type.SUCCESS)


@pytest.mark.req("B-13")
async def test_a_subscription_that_cannot_be_kept_is_refused(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        store.holding = True
        await wire.write(wire.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="s", subType=Exclusive, consumer_id=0))
        await wire.quiet()
        store.fail()
        refused = await wire.expect(Type.ERROR)
        assert refused.error == pb.PersistenceError
        store.release()
        await wire.subscribe(name="s")
        await wire.flow()
        await wire.publish(plain(b"x"))
        assert await wire.payloads(1) == [b"x"]


async def test_a_client_that_leaves_before_its_subscription_is_kept(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        store.holding = True
        await wire.write(wire.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="s", subType=Exclusive, consumer_id=0))
        await wire.quiet()
        await wire.aclose()
        other = await bed.connect()
        await other.quiet()
        store.release()
        await other.subscribe(name="s")


# UNSUBSCRIBE


async def test_unsubscribing_deletes_the_subscription(bed: Bed, wire: Wire, five: list[Position]) -> None:
    await wire.subscribe(initialPosition=Earliest)
    await wire.ask(Type.UNSUBSCRIBE, consumer_id=0)
    assert list(topic_of(bed).subscriptions) == []
    assert await wire.refused(Type.UNSUBSCRIBE, consumer_id=0) == (pb.MetadataError, "Consumer not found")
    await wire.subscribe()
    await wire.flow()
    await wire.quiet()  # a new one, at the end


@pytest.mark.parametrize("type", [Shared, Failover])
async def test_nobody_unsubscribes_others_unless_forced(bed: Bed, wire: Wire, type: int) -> None:
    other = await bed.connect()
    for number, consumer in enumerate((wire, other)):
        await consumer.subscribe(type=type, consumer_name=f"c{number}")
    why = "Unconnected or shared consumer attempting to unsubscribe"
    for consumer in (wire, other):
        assert await consumer.refused(Type.UNSUBSCRIBE, consumer_id=0) == (pb.MetadataError, why)
        consumer.inbox.clear()
    await wire.ask(Type.UNSUBSCRIBE, consumer_id=0, force=True)
    assert (await other.expect(Type.CLOSE_CONSUMER)).request_id == 2**64 - 1
    assert list(topic_of(bed).subscriptions) == []
    await other.subscribe(type=type)


async def test_unsubscribing_readers_and_loose_subscriptions(wire: Wire) -> None:
    await wire.subscribe(durable=False)
    await wire.ask(Type.UNSUBSCRIBE, consumer_id=0)
    await wire.subscribe(topic=LOOSE)
    await wire.ask(Type.UNSUBSCRIBE, consumer_id=0)


@pytest.mark.req("B-13")
async def test_a_closed_subscription_stays_and_goes_on(wire: Wire, five: list[Position]) -> None:
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    await wire.messages(5)
    await wire.ack(five[0], five[2])
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await wire.publish(plain(b"meanwhile"), producer_id=50)
    await wire.subscribe(initialPosition=Latest, consumer_id=1)
    await wire.flow(consumer_id=1)
    messages = await wire.messages(4)
    assert [message.position for message in messages[:3]] == [five[1], five[3], five[4]]
    assert messages[3].payload == b"meanwhile"


@pytest.mark.req("B-40")
async def test_consumers_without_a_name_have_none(bed: Bed, wire: Wire) -> None:
    await wire.subscribe()
    (consumer,) = topic_of(bed).subscriptions["sub"].consumers
    assert consumer.name == ""
