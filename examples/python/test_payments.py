from datetime import timedelta

import pytest
from pulsar import ConsumerType


@pytest.mark.pulsar(policies={"deduplicationEnabled": True})
def test_a_lost_receipt_makes_no_duplicate(pulsar_broker, pulsar_client, pulsar_topic, pulsar_faults):
    # The broker stores the message, and closes the connection before the receipt.
    lost = pulsar_faults.add("close", "SEND", stage="after")
    pulsar_client.create_producer(pulsar_topic).send(b"paid")
    assert lost.hits == 1
    pulsar_broker.assert_produced(pulsar_topic, [b"paid"])


def test_a_reminder_in_a_week_comes_now(pulsar_client, pulsar_topic, pulsar_clock):
    consumer = pulsar_client.subscribe(pulsar_topic, "reminders", ConsumerType.Shared)
    pulsar_client.create_producer(pulsar_topic).send(b"pay", deliver_after=timedelta(days=7))
    pulsar_clock.advance(timedelta(days=7))
    assert consumer.receive(timeout_millis=30_000).data() == b"pay"
