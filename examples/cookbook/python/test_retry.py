from pulsar import ConsumerDeadLetterPolicy, ConsumerType

DEAD_LETTERS = ConsumerDeadLetterPolicy(max_redeliver_count=2, initial_subscription_name="repair")


def book(order):
    if order != b"3 apples":
        raise ValueError(order)


def test_an_order_that_always_fails_becomes_a_dead_letter(pulsar_broker, pulsar_client, pulsar_topic):
    consumer = pulsar_client.subscribe(
        pulsar_topic,
        "billing",
        ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=DEAD_LETTERS,
    )
    producer = pulsar_client.create_producer(pulsar_topic)
    producer.send(b"3 apples")
    producer.send(b"no order")

    for _ in range(4):  # the first order once, the second one and its two redeliveries
        message = consumer.receive(timeout_millis=30_000)
        try:
            book(message.data())
            consumer.acknowledge(message)
        except ValueError:
            consumer.negative_acknowledge(message)

    pulsar_broker.assert_produced(f"{pulsar_topic}-billing-DLQ", [b"no order"], timeout=30)
    pulsar_broker.assert_acked(pulsar_topic, "billing", 2, timeout=30)
