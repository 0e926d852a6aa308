import pytest

LINES = [b"3 apples", b"2 pears", b"1 melon"]


def publish(client, topic):
    """Publish the lines of a file. The number of the line is the sequence id."""
    producer = client.create_producer(topic, producer_name="orders.csv", initial_sequence_id=-1)
    for number in range(producer.last_sequence_id() + 1, len(LINES)):
        producer.send(LINES[number])
    producer.close()


@pytest.mark.pulsar(policies={"deduplicationEnabled": True})
def test_a_second_run_publishes_nothing_again(pulsar_broker, pulsar_client, pulsar_topic):
    publish(pulsar_client, pulsar_topic)
    publish(pulsar_client, pulsar_topic)
    pulsar_broker.assert_produced(pulsar_topic, LINES)


@pytest.mark.pulsar(policies={"deduplicationEnabled": True})
def test_a_lost_receipt_makes_no_duplicate(pulsar_broker, pulsar_client, pulsar_topic, pulsar_faults):
    lost = pulsar_faults.add("close", "SEND", stage="after", skip=1)  # the second line is stored, its receipt is lost
    publish(pulsar_client, pulsar_topic)
    assert lost.hits == 1
    pulsar_broker.assert_produced(pulsar_topic, LINES)
