from datetime import timedelta

import pulsar
import pytest
from pulsar import ConsumerType


def test_orders_survive_a_bad_network(pulsar_broker, pulsar_client, pulsar_topic, pulsar_faults, pulsar_checker):
    consumer = pulsar_client.subscribe(pulsar_topic, "billing")
    producer = pulsar_client.create_producer(pulsar_topic)
    cut = pulsar_faults.add("close", "SEND", count=2)  # before the broker has the message
    refused = pulsar_faults.add({"kind": "answer", "error": "ServiceNotReady"}, "LOOKUP", count=2)

    for order in (b"3 apples", b"2 pears"):
        producer.send(order)

    assert (cut.hits, refused.hits) == (2, 2)
    assert [consumer.receive(30_000).data() for _ in range(2)] == [b"3 apples", b"2 pears"]


def test_the_second_consumer_takes_over(pulsar_broker, pulsar_client, pulsar_topic, pulsar_clock):
    # The lowest name is active on a topic with one partition. Without partitions, the name of the topic decides.
    pulsar_broker.create_topic(pulsar_topic, partitions=1)
    first, second = (
        pulsar_client.subscribe(pulsar_topic, "billing", ConsumerType.Failover, consumer_name=name)
        for name in ("first", "second")
    )
    producer = pulsar_client.create_producer(pulsar_topic)
    producer.send(b"3 apples")
    assert first.receive(30_000).data() == b"3 apples"

    first.close()  # the order is not acknowledged
    pulsar_clock.advance(timedelta(seconds=1))  # activeConsumerFailoverDelayTimeMillis

    assert second.receive(30_000).data() == b"3 apples"


@pytest.mark.pulsar(brokers=3)
def test_orders_survive_the_death_of_a_broker(pulsar_broker, pulsar_topic):
    urls = ",".join(url.removeprefix("pulsar://") for url in pulsar_broker.service_urls)
    client = pulsar.Client(f"pulsar://{urls}")
    producer = client.create_producer(pulsar_topic)
    producer.send(b"3 apples")

    for broker in range(2):  # one of the first two may own the topic, and the third lives on
        pulsar_broker.kill(broker)
    producer.send(b"2 pears")

    pulsar_broker.assert_produced(pulsar_topic, [b"3 apples", b"2 pears"])
    for broker in range(2):
        pulsar_broker.bring_back(broker)
    client.close()
