"""Scenarios of the four types of subscriptions and their consumers."""

from __future__ import annotations

from collections import defaultdict

from pulsarium.conformance.scenario import PATIENCE, Stage, keyed, scenario, texts, values_of
from pulsarium.proto.routing import RING, murmur3

TYPES = "Pulsar's documentation, Concepts: Messaging, Subscription types"
STICKY = "PulsarApi.proto, KeySharedMeta"
SUBSCRIPTIONS = "Pulsar's documentation, Concepts: Messaging, Subscriptions"


@scenario("SUBSCRIBE", "Each subscription gets every message.", SUBSCRIPTIONS, bug="reverses")
def each_subscription_gets_every_message(stage: Stage) -> None:
    topic = stage.topic()
    consumers = [stage.consumer(topic, subscription=name) for name in "ab"]
    stage.send(stage.producer(topic), texts(0, 10))
    for each in consumers:
        stage.receive_in_order(each, texts(0, 10))


@scenario(
    "SUBSCRIBE",
    "A new subscription at the latest position gets later messages alone.",
    SUBSCRIPTIONS,
    bug='sets consumer.start "earliest"',
)
def a_subscription_may_begin_at_the_latest_message(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer(topic)
    stage.send(producer, texts(0, 5))
    consumer = stage.consumer(topic, start="latest")
    stage.send(producer, texts(5, 5))
    stage.receive_in_order(consumer, texts(5, 5))


@scenario(
    "SUBSCRIBE",
    "A new subscription at the earliest position gets all messages.",
    SUBSCRIPTIONS,
    bug='sets consumer.start "latest"',
)
def a_subscription_may_begin_at_the_earliest_message(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(stage.producer(topic), texts(0, 5))
    stage.receive_in_order(stage.consumer(topic), texts(0, 5))


@scenario("SUBSCRIBE", "A subscription keeps its messages while it has no consumer.", SUBSCRIPTIONS, bug="reverses")
def a_subscription_keeps_messages_without_a_consumer(stage: Stage) -> None:
    topic = stage.topic()
    stage.close(stage.consumer(topic, start="latest"))
    stage.send(stage.producer(topic), texts(0, 5))
    stage.receive_in_order(stage.consumer(topic, start="latest"), texts(0, 5))


@scenario(
    "SUBSCRIBE",
    "A second exclusive consumer is refused until the first one closes.",
    TYPES,
    bug='sets consumer.type "Shared"',
)
def an_exclusive_consumer_keeps_others_out(stage: Stage) -> None:
    topic = stage.topic()
    first = stage.consumer(topic)
    fields = {"client": stage.client, "topics": [topic], "subscription": "s", "type": "Exclusive", "start": "earliest"}
    stage.refused(("ConsumerBusy", "Other"), "consumer", **fields, **{"as": "x"})
    stage.close(first)
    stage.consumer(topic)


@scenario(
    "SUBSCRIBE", "A consumer of another type is refused while one is there.", TYPES, bug='sets consumer.type "Shared"'
)
def a_consumer_of_another_type_is_refused(stage: Stage) -> None:
    topic = stage.topic()
    stage.consumer(topic, "Shared")
    fields = {"client": stage.client, "topics": [topic], "subscription": "s", "type": "Failover", "start": "earliest"}
    stage.refused(("ConsumerBusy", "Other"), "consumer", **fields, **{"as": "x"})


@scenario(
    "SUBSCRIBE",
    "Consumers of a Failover subscription take turns: the next one goes on where one closed.",
    TYPES,
    bug="ignores close",
)
def the_next_failover_consumer_goes_on(stage: Stage) -> None:
    topic = stage.topic()
    consumers = [stage.consumer(topic, "Failover", name=name) for name in "ab"]
    producer = stage.producer(topic)
    stage.send(producer, texts(0, 10))
    got = stage.receive_shared(consumers, 10)
    active = 0 if got[0] else 1
    stage.equal([each["value"] for each in got[active]], texts(0, 10), "messages of the active consumer")
    stage.close(consumers[active])
    stage.send(producer, texts(10, 10))
    stage.receive_in_order(consumers[1 - active], texts(10, 10))


@scenario(
    "SUBSCRIBE",
    "What a Failover consumer did not acknowledge comes again to the next one, in order.",
    TYPES,
    bug='sets consumer.type "Exclusive"',
)
def unacknowledged_messages_go_to_the_next_failover_consumer(stage: Stage) -> None:
    topic = stage.topic()
    first = stage.consumer(topic, "Failover", name="a")
    stage.send(stage.producer(topic), texts(0, 10))
    got = stage.receive_in_order(first, texts(0, 10))
    for each in got[:4]:
        stage.acknowledge(first, each)
    second = stage.consumer(topic, "Failover", name="b")
    stage.close(first)
    stage.receive_in_order(second, texts(4, 6))


@scenario(
    "SUBSCRIBE",
    "Consumers of a Shared subscription share the messages, each message once.",
    TYPES,
    bug='sets consumer.type "Failover"',
)
def shared_consumers_share_the_messages(stage: Stage) -> None:
    topic = stage.topic()
    consumers = [stage.consumer(topic, "Shared", queue=5) for _ in range(2)]
    stage.send(stage.producer(topic), texts(0, 20))
    got = stage.receive_shared(consumers, 20)
    stage.equal(sorted(each["value"] for some in got for each in some), sorted(texts(0, 20)), "messages")
    stage.that(all(got), "one consumer got everything")


@scenario(
    "SUBSCRIBE",
    "What a Shared consumer did not acknowledge goes to another one when it closes.",
    TYPES,
    bug="ignores acknowledge",
)
def unacknowledged_messages_go_to_another_shared_consumer(stage: Stage) -> None:
    topic = stage.topic()
    first = stage.consumer(topic, "Shared")
    stage.send(stage.producer(topic), texts(0, 10))
    got = stage.receive_all(first, texts(0, 10))
    for each in got[::2]:
        stage.acknowledge(first, each)
    second = stage.consumer(topic, "Shared")
    stage.close(first)
    stage.receive_all(second, [each["value"] for each in got[1::2]])


@scenario(
    "SUBSCRIBE",
    "A Shared consumer with too many unacknowledged messages gets no more until it acknowledges.",
    "maxUnackedMessagesPerConsumer",
    bug="acknowledges",
)
def a_consumer_with_too_many_unacknowledged_messages_waits(stage: Stage) -> None:
    stage.side.call("POST", f"/admin/v2/namespaces/{stage.namespace}/maxUnackedMessagesPerConsumer", 20)
    topic = stage.topic()
    stage.close(stage.consumer(topic, "Shared"))
    stage.send_each(stage.producer(topic), texts(0, 50))
    consumer = stage.consumer(topic, "Shared")
    held = stage.receive_in_order(consumer, texts(0, 20))
    stage.nothing(consumer)
    for each in held:
        stage.acknowledge(consumer, each)
    for value in texts(20, 30):
        stage.receive_in_order(consumer, [value], acknowledge=True)


@scenario(
    "SUBSCRIBE", "On Key_Shared each key goes to one consumer, in order.", "PIP-34", bug='sets consumer.type "Shared"'
)
def each_key_goes_to_one_consumer(stage: Stage) -> None:
    topic = stage.topic()
    consumers = [stage.consumer(topic, "Key_Shared") for _ in range(2)]
    stage.send_each(stage.producer(topic), keyed(0, 50, keys=25))  # so many that each consumer has one
    got = stage.receive_shared(consumers, 50)
    for some in got:
        stage.in_order(some)
    homes = defaultdict(set)
    for number, some in enumerate(got):
        for each in some:
            homes[each["key"]].add(number)
    stage.equal({key for key, home in homes.items() if len(home) > 1}, set(), "keys with two consumers")
    stage.that(all(got), "one consumer got everything")


@scenario("SUBSCRIBE", "On Key_Shared the ordering key decides, before the key.", "PIP-34", bug="unsends ordering-key")
def the_ordering_key_decides_before_the_key(stage: Stage) -> None:
    topic = stage.topic()
    consumers = [stage.consumer(topic, "Key_Shared") for _ in range(2)]
    sent = [{"value": f"m-{n}", "key": f"k{n}", "ordering-key": "one"} for n in range(20)]
    stage.send_each(stage.producer(topic), sent)
    got = stage.receive_shared(consumers, 20)
    stage.equal(sorted(len(some) for some in got), [0, 20], "messages of the two consumers")


def sticky_hash(key: str) -> int:
    """Return the hash that chooses the consumer of a key. None is 0."""
    return murmur3(key) & 0x7FFFFFFF & RING - 1 or 1


@scenario(
    "SUBSCRIBE",
    "On Key_Shared a consumer with ranges of hashes gets the keys in them, in order.",
    STICKY,
    bug="sets consumer.hash-ranges [[0, 65535]]",
)
def consumers_get_the_keys_of_their_hash_ranges(stage: Stage) -> None:
    topic, half = stage.topic(), RING // 2
    consumers = [stage.consumer(topic, "Key_Shared", hash_ranges=[ends]) for ends in ([0, half - 1], [half, RING - 1])]
    stage.send_each(stage.producer(topic), keyed(0, 50, keys=25))
    for number, some in enumerate(stage.receive_shared(consumers, 50)):
        stage.in_order(some)
        stage.equal({sticky_hash(each["key"]) // half for each in some}, {number}, "halves of the ring")


@scenario(
    "SUBSCRIBE",
    "On Key_Shared a consumer is refused whose ranges of hashes overlap another one's.",
    STICKY,
    bug="succeeds consumer",
)
def overlapping_hash_ranges_are_refused(stage: Stage) -> None:
    topic = stage.topic()
    stage.consumer(topic, "Key_Shared", hash_ranges=[[0, 100]])
    fields = {"topics": [topic], "subscription": "s", "type": "Key_Shared", "start": "earliest", "as": "x"}
    stage.refused(("ConsumerBusy", "Other"), "consumer", client=stage.client, **fields, hash_ranges=[[50, 200]])
    stage.consumer(topic, "Key_Shared", hash_ranges=[[101, 200]])


@scenario(
    "SUBSCRIBE",
    "On Key_Shared the keys of a consumer that closes go to another one, in order.",
    "PIP-34",
    bug="reverses",
)
def keys_move_when_a_consumer_closes(stage: Stage) -> None:
    topic = stage.topic()
    first, second = (stage.consumer(topic, "Key_Shared", client=stage.connect()) for _ in range(2))
    producer = stage.producer(topic)
    stage.send_each(producer, keyed(0, 20))
    before = stage.receive_shared([first, second], 20)
    stage.close(first)
    stage.send_each(producer, keyed(20, 20))
    stage.in_order([*before[1], *stage.receive_all(second, values_of(keyed(20, 20)))])


@scenario(
    "UNSUBSCRIBE",
    "After an unsubscription, a subscription of the same name begins anew.",
    SUBSCRIPTIONS,
    bug="ignores unsubscribe",
)
def an_unsubscription_deletes_the_subscription(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send(stage.producer(topic), texts(0, 5))
    stage.receive_in_order(consumer, texts(0, 5), acknowledge=True)
    stage.ask("unsubscribe", consumer=consumer)
    stage.receive_in_order(stage.consumer(topic), texts(0, 5))


@scenario(
    "UNSUBSCRIBE",
    "A Shared consumer cannot unsubscribe while another one is connected.",
    SUBSCRIPTIONS,
    bug="succeeds unsubscribe",
)
def a_shared_consumer_cannot_unsubscribe_beside_another(stage: Stage) -> None:
    stage.need("open", "open.reconnect")  # the WebSocket API ends the socket
    topic = stage.topic()
    first, second = (stage.consumer(topic, "Shared") for _ in range(2))
    stage.refused(("ConsumerBusy", "Other"), "unsubscribe", consumer=first)
    stage.send(stage.producer(topic), ["a"])
    stage.receive_shared([first, second], 1)


@scenario("SUBSCRIBE", "One consumer reads several topics.", SUBSCRIPTIONS, bug='tells topic "x"')
def one_consumer_reads_several_topics(stage: Stage) -> None:
    topics = [stage.topic() for _ in range(2)]
    consumer = stage.consumer(topics)
    for topic in topics:
        stage.send(stage.producer(topic), [topic])
    got = stage.receive_all(consumer, topics, acknowledge=True)
    stage.equal({stage.told(each, "topic") for each in got}, set(topics), "topics of the messages")


@scenario(
    "SUBSCRIBE",
    "A pattern subscribes to the matching topics, and not to others.",
    "PIP-13",
    bug='sets consumer.pattern ".*"',
)
def a_pattern_subscribes_to_matching_topics(stage: Stage) -> None:
    base = f"persistent://{stage.namespace}/"
    stage.topic()
    for name in ("red-1", "red-2", "blue"):
        stage.send(stage.producer(base + name), [name])
    consumer = stage.consumer([], pattern=f"{base}red-.*")
    stage.receive_all(consumer, ["red-1", "red-2"], acknowledge=True)
    stage.nothing(consumer)


@scenario(
    "SUBSCRIBE",
    "A pattern subscribes to all partitions of the topics that it matches.",
    "PIP-13",
    bug='sets consumer.pattern ".*"',
)
def a_pattern_subscribes_to_partitioned_topics(stage: Stage) -> None:
    blue, red, single = stage.topic(2), stage.topic(3), stage.topic()
    stage.send(stage.producer(blue), ["blue"])
    stage.send_each(stage.producer(red), texts(0, 6))
    stage.send(stage.producer(single), ["single"])
    names = "|".join(each.rpartition("/")[2] for each in (red, single))
    consumer = stage.consumer([], pattern=f"persistent://{stage.namespace}/({names})")
    got = stage.receive_all(consumer, [*texts(0, 6), "single"], acknowledge=True)
    stage.nothing(consumer)
    homes = {*(f"{red}-partition-{number}" for number in range(3)), single}
    stage.equal({stage.told(each, "topic") for each in got}, homes, "topics of the messages")


@scenario(
    "WATCH_TOPIC_LIST", "A pattern subscribes to topics that are created later.", "PIP-145", bug='tells value "x"'
)
def a_pattern_finds_later_topics(stage: Stage) -> None:
    base = f"persistent://{stage.namespace}/"
    stage.topic()
    stage.send(stage.producer(base + "red-1"), ["red-1"])
    consumer = stage.consumer([], pattern=f"{base}red-.*")
    stage.receive_all(consumer, ["red-1"])
    stage.send(stage.producer(base + "red-2"), ["red-2"])  # some clients look once a minute
    stage.equal([each["value"] for each in stage.receive(consumer, 1, 6 * PATIENCE)], ["red-2"], "later messages")


@scenario(
    "SUBSCRIBE",
    "A consumer with a queue of size 0 asks for one message at a time.",
    "CommandFlow",
    bug="without consumer.queue",
)
def a_consumer_may_have_no_queue(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared", queue=0)
    stage.send_each(stage.producer(topic), texts(0, 10))
    for value in texts(0, 10):
        stage.receive_in_order(consumer, [value], acknowledge=True)
    flows = [frame.body.messagePermits for frame in stage.history().of("FLOW")]
    stage.equal(set(flows), {1}, "permits of the FLOW commands")


@scenario(
    "SUBSCRIBE",
    "A consumer of higher priority gets the messages while it has permits.",
    "CommandSubscribe",
    bug="sets consumer.priority 0",
)
def a_consumer_of_higher_priority_comes_first(stage: Stage) -> None:
    topic = stage.topic()
    low = stage.consumer(topic, "Shared", priority=1)
    high = stage.consumer(topic, "Shared", priority=0)
    stage.send(stage.producer(topic), texts(0, 10))
    stage.receive_all(high, texts(0, 10))
    stage.nothing(low)


@scenario(
    "SUBSCRIBE",
    "A consumer of lower priority gets what those of higher priority have no permits for.",
    "CommandSubscribe",
    bug="without consumer.queue",
)
def a_consumer_of_lower_priority_gets_the_rest(stage: Stage) -> None:
    topic = stage.topic()
    high = stage.consumer(topic, "Shared", priority=0, queue=3)
    low = stage.consumer(topic, "Shared", priority=1, queue=3)
    stage.send_each(stage.producer(topic), texts(0, 50))
    stage.that(stage.receive(low, 1, PATIENCE), "the consumer of lower priority received nothing")
    stage.equal([each["value"] for each in stage.receive(high, 1)], ["m-0"], "first message of the other one")


@scenario(
    "SUBSCRIBE",
    "The broker knows the name of a consumer and the type of its subscription.",
    "CommandSubscribe",
    bug="without consumer.name",
)
def the_broker_knows_the_name_of_a_consumer(stage: Stage) -> None:
    topic = stage.topic()
    stage.consumer(topic, "Shared", name="me")
    found = stage.side.stats(topic)["subscriptions"]["s"]
    stage.equal(([each["consumerName"] for each in found["consumers"]], found["type"]), (["me"], "Shared"), "stats")


@scenario(
    "SUBSCRIBE",
    "A batch of messages is received at once, up to its limit.",
    "PIP-38",
    bug="says receive-batch.messages []",
)
def messages_are_received_in_batches(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, batch_receive={"count": 10, "seconds": 10})
    stage.send(stage.producer(topic), texts(0, 15))
    got = stage.ask("receive-batch", consumer=consumer)["messages"]
    stage.equal([each["value"] for each in got], texts(0, 10), "the first batch")
