"""Scenarios of partitioned topics, and of topics that move, end or fail."""

from __future__ import annotations

from collections import defaultdict

from pulsarium.conformance.scenario import PATIENCE, Stage, keyed, scenario, texts, values_of
from pulsarium.conformance.side import admin_path

PARTITIONS = "Pulsar's documentation, Concepts: Messaging, Partitioned topics"
CLOSE = "CommandCloseProducer, CommandCloseConsumer"


@scenario(
    "PARTITIONED_METADATA", "Messages without a key spread over all partitions.", PARTITIONS, bug='tells topic "x"'
)
def messages_spread_over_the_partitions(stage: Stage) -> None:
    topic = stage.topic(3)
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic), texts(0, 30))
    got = stage.receive_all(consumer, texts(0, 30), acknowledge=True)
    stage.equal(len({stage.told(each, "topic") for each in got}), 3, "partitions of the messages")


@scenario("PARTITIONED_METADATA", "All messages of a key are in one partition, in order.", PARTITIONS, bug="reverses")
def a_key_stays_in_its_partition(stage: Stage) -> None:
    topic = stage.topic(3)
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic), keyed(0, 40))
    got = stage.receive_all(consumer, values_of(keyed(0, 40)))
    stage.in_order(got)
    homes = defaultdict(set)
    for each in got:
        homes[each["key"]].add(stage.told(each, "topic"))
    stage.equal({key for key, home in homes.items() if len(home) > 1}, set(), "keys in two partitions")


@scenario(
    "PARTITIONED_METADATA",
    "The partitions of a topic have its name and a number.",
    PARTITIONS,
    bug="says partitions.topics []",
)
def partitions_have_the_name_and_a_number(stage: Stage) -> None:
    topic = stage.topic(3)
    found = stage.ask("partitions", client=stage.client, topic=topic)["topics"]
    stage.equal(sorted(found), [f"{topic}-partition-{number}" for number in range(3)], "partitions")


@scenario(
    "PARTITIONED_METADATA", "A topic without partitions is its only one.", PARTITIONS, bug="says partitions.topics []"
)
def a_topic_without_partitions_is_its_only_one(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(stage.producer(topic), ["a"])
    stage.equal(stage.ask("partitions", client=stage.client, topic=topic)["topics"], [topic], "partitions")


@scenario("SUBSCRIBE", "A consumer may read one partition alone.", PARTITIONS, bug='tells value "x"')
def a_consumer_may_read_one_partition(stage: Stage) -> None:
    topic = stage.topic(2)
    consumer = stage.consumer(f"{topic}-partition-1")
    stage.send(stage.producer(f"{topic}-partition-0"), ["zero"])
    stage.send(stage.producer(f"{topic}-partition-1"), ["one"])
    stage.receive_all(consumer, ["one"], acknowledge=True)
    stage.nothing(consumer)


@scenario(
    "SUBSCRIBE",
    "Consumers of a Shared subscription share all partitions.",
    PARTITIONS,
    bug='sets consumer.type "Exclusive"',
)
def shared_consumers_share_all_partitions(stage: Stage) -> None:
    topic = stage.topic(3)
    consumers = [stage.consumer(topic, "Shared", queue=5) for _ in range(2)]
    stage.send_each(stage.producer(topic), texts(0, 30))
    got = stage.receive_shared(consumers, 30)
    stage.equal(sorted(each["value"] for some in got for each in some), sorted(texts(0, 30)), "messages")
    stage.that(all(got), "one consumer got everything")


@scenario(
    "ACTIVE_CONSUMER_CHANGE",
    "Each partition has one active consumer of a Failover subscription, and each consumer has its part of them.",
    PARTITIONS,
    bug='sets consumer.type "Shared"',
)
def failover_consumers_divide_the_partitions(stage: Stage) -> None:
    topic = stage.topic(4)
    consumers = [stage.consumer(topic, "Failover", name=name) for name in "ab"]
    stage.send_each(stage.producer(topic), texts(0, 40))
    got = stage.receive_shared(consumers, 40)
    homes = [{stage.told(each, "topic") for each in some} for some in got]
    stage.equal([len(each) for each in homes], [2, 2], "partitions of the consumers")
    stage.equal(homes[0] & homes[1], set(), "partitions with two consumers")


@scenario("SEEK", "A seek to the earliest message moves all partitions.", PARTITIONS, bug="ignores seek")
def a_seek_moves_all_partitions(stage: Stage) -> None:
    topic = stage.topic(3)
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic), texts(0, 12))
    stage.receive_all(consumer, texts(0, 12), acknowledge=True)
    stage.ask("seek", consumer=consumer, start="earliest")
    stage.receive_all(consumer, texts(0, 12))


@scenario("SEEK", "A seek to a time moves all partitions.", PARTITIONS, bug="sets seek.time 0")
def a_seek_to_a_time_moves_all_partitions(stage: Stage) -> None:
    topic = stage.topic(3)
    consumer, producer = stage.consumer(topic), stage.producer(topic)
    stage.send_each(producer, texts(0, 6))
    moment = stage.now()
    stage.send_each(producer, texts(6, 6))
    stage.receive_all(consumer, texts(0, 12), acknowledge=True)
    stage.ask("seek", consumer=consumer, time=moment)
    stage.receive_all(consumer, texts(6, 6))
    stage.nothing(consumer)


@scenario(
    "CLOSE_PRODUCER",
    "Producer and consumer go on after an unload of their topic, and nothing is lost.",
    CLOSE,
    bug="reverses",
)
def clients_go_on_after_an_unload(stage: Stage) -> None:
    topic = stage.topic()
    consumer, producer = stage.consumer(topic), stage.producer(topic)
    stage.send(producer, texts(0, 5))
    stage.receive_in_order(consumer, texts(0, 5), acknowledge=True)
    stage.until(lambda: stage.backlog(topic) == 0, "the acknowledgements did not arrive")
    stage.side.unload(topic)
    stage.send(producer, texts(5, 5))
    stage.receive_in_order(consumer, texts(5, 5), acknowledge=True)


@scenario("CLOSE_CONSUMER", "What is not acknowledged at an unload comes again, in order.", CLOSE, bug="reverses")
def unacknowledged_messages_come_again_after_an_unload(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.send_each(stage.producer(topic), texts(0, 10))
    got = stage.receive_in_order(consumer, texts(0, 10))
    for each in got[:4]:
        stage.acknowledge(consumer, each)
    stage.until(lambda: stage.backlog(topic) == 6, "the acknowledgements did not arrive")
    stage.side.unload(topic)
    stage.receive_in_order(consumer, texts(4, 6))


@scenario(
    "CLOSE_PRODUCER",
    "Messages that are published during unloads are stored in order, and none is lost.",
    CLOSE,
    bug="unorders",
)
def messages_of_unloads_keep_their_order(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer(topic)
    sending = []
    for first in (0, 20, 40):
        sending.append(stage.sending(producer, texts(first, 20)))
        stage.side.unload(topic)
    for each in sending:
        each.wait(60)
    reader, values = stage.reader(topic), dict[str, None]()  # some may be there twice
    while len(values) < 60 and (some := stage.receive(reader, 60 - len(values), PATIENCE)):
        values |= dict.fromkeys(each["value"] for each in some)
    stage.equal(list(values), texts(0, 60), "messages")


@scenario("LOOKUP", "Topics of two brokers are found from either broker.", "CommandLookupTopic", bug='tells value "x"')
def topics_are_found_from_either_broker(stage: Stage) -> None:
    stage.need_brokers(2)
    clients = [stage.connect(number) for number in range(len(stage.side.urls))]
    for number in range(8):
        topic = stage.topic()
        consumer = stage.consumer(topic, client=clients[number % len(clients)])
        stage.send(stage.producer(topic, client=clients[-1 - number % len(clients)]), [f"m-{number}"])
        stage.receive_all(consumer, [f"m-{number}"], acknowledge=True)


@scenario(
    "LOOKUP",
    "Producer and consumer go on at another broker when theirs ends.",
    "CommandLookupTopic",
    bug='tells value "x"',
)
def clients_go_on_at_another_broker(stage: Stage) -> None:
    stage.need_brokers(2)
    topic = stage.topic()
    while stage.side.owner(topic) == 0:  # the broker of the service URL stays
        topic = stage.topic()
    consumer, producer = stage.consumer(topic), stage.producer(topic)
    stage.send(producer, ["a"])
    stage.receive_all(consumer, ["a"], acknowledge=True)
    stage.until(lambda: stage.backlog(topic) == 0, "the acknowledgement did not arrive")
    stage.side.kill(1)
    try:
        stage.send(producer, ["b"])
        stage.receive_all(consumer, ["b"])
    finally:
        stage.side.bring_back(1)


@scenario(
    "SEND",
    "Messages that were not confirmed when a connection ended are stored after the next one.",
    "CommandSend",
    bug="unsends-second",
)
def unconfirmed_messages_are_sent_again(stage: Stage) -> None:
    stage.need("open", "open.reconnect")
    topic = stage.topic()
    consumer, producer = stage.consumer(topic), stage.producer(topic)
    sending = stage.sending(producer, texts(0, 200))
    stage.side.cut()
    sending.wait(60)
    stage.receive_at_least(consumer, texts(0, 200))


@scenario(
    "TopicTerminated",
    "A terminated topic refuses messages, and can be read to its end.",
    "PIP-16, terminated topics",
    bug="succeeds send",
)
def a_terminated_topic_can_be_read_to_its_end(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer(topic)
    stage.send(producer, texts(0, 5))
    stage.side.terminate(topic)
    fields = {"producer": producer, "messages": [{"value": "late"}]}
    stage.refused(("TopicTerminated", "AlreadyClosed", "Other", "Timeout"), "send", **fields)
    stage.receive_in_order(stage.consumer(topic), texts(0, 5))


@scenario(
    "TopicTerminated", "A terminated topic refuses producers.", "PIP-16, terminated topics", bug="succeeds producer"
)
def a_terminated_topic_refuses_producers(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(stage.producer(topic), ["a"])
    stage.side.terminate(topic)
    fields = {"client": stage.client, "topic": topic, "as": "x"}
    stage.refused(("TopicTerminated", "Other", "Timeout"), "producer", **fields)


@scenario(
    "ServerError",
    "A topic in a missing namespace is not found.",
    "PulsarApi.proto, ServerError",
    bug="succeeds producer",
)
def a_topic_in_a_missing_namespace_is_not_found(stage: Stage) -> None:
    stage.topic()
    fields = {"client": stage.client, "topic": f"persistent://{stage.namespace}-no/t", "as": "x"}
    stage.refused(("NotFound", "Other", "Authorization", "Timeout"), "producer", **fields)


@scenario(
    "ServerError",
    "Without automatic creation a missing topic is not found.",
    "allowAutoTopicCreation",
    bug="succeeds producer",
)
def a_missing_topic_is_not_found(stage: Stage) -> None:
    override = {"allowAutoTopicCreation": False, "topicType": "non-partitioned"}
    stage.side.call("POST", f"/admin/v2/namespaces/{stage.namespace}/autoTopicCreation", override)
    fields = {"client": stage.client, "topic": stage.topic(), "as": "x"}
    stage.refused(("NotFound", "Other"), "producer", **fields)


@scenario(
    "ServerError",
    "Without automatic creation a missing topic has no consumers and no readers.",
    "allowAutoTopicCreation",
    bug="succeeds consumer",
)
def a_missing_topic_has_no_consumers(stage: Stage) -> None:
    override = {"allowAutoTopicCreation": False, "topicType": "non-partitioned"}
    stage.side.call("POST", f"/admin/v2/namespaces/{stage.namespace}/autoTopicCreation", override)
    fields = {"client": stage.client, "start": "earliest", "as": "x"}
    told = {"topics": [stage.topic()], "subscription": "s", "type": "Exclusive"}
    stage.refused(("NotFound", "Other"), "consumer", **fields, **told)
    stage.refused(("NotFound", "Other"), "reader", **fields, topic=stage.topic())


@scenario(
    "ServerError",
    "Without automatic creation a missing subscription is not found, until it is created.",
    "allowAutoSubscriptionCreation",
    bug="succeeds consumer",
)
def a_missing_subscription_is_not_found(stage: Stage) -> None:
    path = f"/admin/v2/namespaces/{stage.namespace}/autoSubscriptionCreation"
    stage.side.call("POST", path, {"allowAutoSubscriptionCreation": False})
    topic = stage.topic()
    stage.send(stage.producer(topic), ["a"])
    fields = {"client": stage.client, "topics": [topic], "subscription": "s", "type": "Exclusive", "start": "earliest"}
    stage.refused(("NotFound", "Other", "Timeout"), "consumer", **fields, **{"as": "x"})
    stage.side.call("PUT", f"{admin_path(topic)}/subscription/s")
    stage.consumer(topic)


@scenario(
    "LOOKUP",
    "A client may look topics up over HTTP.",
    "Pulsar's documentation, Binary protocol: Topic lookup",
    bug='tells value "x"',
)
def topics_are_looked_up_over_http(stage: Stage) -> None:
    topic = stage.topic()
    stage.need("open", "open.http")
    client = stage.opened("open", url=stage.side.admin_url)
    consumer = stage.consumer(topic, client=client)
    stage.send(stage.producer(topic, client=client), ["a"])
    stage.receive_all(consumer, ["a"])


@scenario(
    "PARTITIONED_METADATA",
    "A client may look the partitions of a topic up over HTTP.",
    "Pulsar's documentation, Binary protocol: Topic lookup",
    bug='tells value "x"',
)
def partitions_are_looked_up_over_http(stage: Stage) -> None:
    topic = stage.topic(2)
    stage.need("open", "open.http")
    client = stage.opened("open", url=stage.side.admin_url)
    consumer = stage.consumer(topic, client=client)
    stage.send_each(stage.producer(topic, client=client), texts(0, 4))
    got = stage.receive_all(consumer, texts(0, 4))
    stage.equal(len({stage.told(each, "topic") for each in got}), 2, "partitions of the messages")


@scenario(
    "CONNECT",
    "A client that is closed refuses to open anything.",
    "Pulsar's documentation, Clients",
    bug="succeeds producer",
)
def a_closed_client_opens_nothing(stage: Stage) -> None:
    topic, client = stage.topic(), stage.connect()
    stage.close(client)
    fields = {"client": client, "topic": topic, "as": "x"}
    stage.refused(("AlreadyClosed", "Other", "Connect"), "producer", **fields)


@scenario(
    "CONNECT",
    "A client that is closed has closed its producers and its consumers.",
    "Pulsar's documentation, Clients",
    bug="ignores close",
)
def a_closed_client_has_closed_what_it_opened(stage: Stage) -> None:
    topic, client = stage.topic(), stage.connect()
    producer, consumer = stage.producer(topic, client=client), stage.consumer(topic, client=client)
    stage.close(client)
    kinds = ("AlreadyClosed", "Other", "Connect")
    stage.refused(kinds, "send", producer=producer, messages=[{"value": "a"}])
    stage.refused(kinds, "receive", consumer=consumer, count=1, seconds=5)


@scenario("CLOSE_CONSUMER", "A closed consumer receives nothing and fails at once.", CLOSE, bug="succeeds receive")
def a_closed_consumer_receives_nothing(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic)
    stage.close(consumer)
    stage.send(stage.producer(topic), ["a"])
    stage.refused(("AlreadyClosed", "Other"), "receive", consumer=consumer, count=1, seconds=5)


@scenario("CLOSE_PRODUCER", "A closed producer publishes nothing and fails at once.", CLOSE, bug="succeeds send")
def a_closed_producer_publishes_nothing(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer(topic)
    stage.close(producer)
    stage.refused(("AlreadyClosed", "Other"), "send", producer=producer, messages=[{"value": "a"}])
