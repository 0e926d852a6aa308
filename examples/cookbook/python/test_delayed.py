from datetime import timedelta

from pulsar import ConsumerType


def test_a_reminder_in_a_week_comes_now(pulsar_broker, pulsar_client, pulsar_topic, pulsar_clock):
    consumer = pulsar_client.subscribe(pulsar_topic, "mail", ConsumerType.Shared)
    pulsar_client.create_producer(pulsar_topic).send(b"pay", deliver_after=timedelta(days=7))

    pulsar_clock.advance(timedelta(days=6))
    assert pulsar_broker.why(pulsar_topic, "mail").reason == "delayed"

    pulsar_clock.advance(timedelta(days=1))
    assert consumer.receive(timeout_millis=30_000).data() == b"pay"
