from datetime import timedelta

import pytest
from pulsar import ConsumerType


@pytest.mark.parametrize("days", [1, 7, 30])
def test_each_test_has_its_own_topic_time_and_faults(pulsar_client, pulsar_topic, pulsar_clock, pulsar_faults, days):
    consumer = pulsar_client.subscribe(pulsar_topic, "mail", ConsumerType.Shared)
    lost = pulsar_faults.add("drop", "ACK")
    pulsar_client.create_producer(pulsar_topic).send(b"pay", deliver_after=timedelta(days=days))

    pulsar_clock.advance(timedelta(days=days))

    consumer.acknowledge(consumer.receive(timeout_millis=30_000))
    consumer.close()
    assert lost.hits == 1
