import pulsar
import pytest
from pulsar.schema import AvroSchema, Integer, Record, String


class First:
    class Order(Record):
        customer = String()


class Second:
    class Order(Record):
        customer = String()
        # Old orders have no note: the default lets new consumers read them.
        note = String(default="none", required_default=True)


class Broken:
    class Order(Record):
        customer = Integer()  # no consumer can read old orders


@pytest.mark.pulsar(policies={"schema_compatibility_strategy": "FULL"})
def test_old_and_new_programs_read_each_other(pulsar_client, pulsar_topic):
    old, new = AvroSchema(First.Order), AvroSchema(Second.Order)
    old_producer = pulsar_client.create_producer(pulsar_topic, schema=old)
    old_consumer = pulsar_client.subscribe(pulsar_topic, "old", schema=old)
    new_consumer = pulsar_client.subscribe(pulsar_topic, "new", schema=new)
    new_producer = pulsar_client.create_producer(pulsar_topic, schema=new)

    old_producer.send(First.Order(customer="Ada"))
    new_producer.send(Second.Order(customer="Ben", note="with care"))

    assert [old_consumer.receive(30_000).value().customer for _ in range(2)] == ["Ada", "Ben"]
    assert [new_consumer.receive(30_000).value().note for _ in range(2)] == ["none", "with care"]


@pytest.mark.pulsar(policies={"schema_compatibility_strategy": "FULL"})
def test_the_broker_refuses_a_change_that_breaks_consumers(pulsar_client, pulsar_topic):
    pulsar_client.create_producer(pulsar_topic, schema=AvroSchema(First.Order))
    with pytest.raises(pulsar.IncompatibleSchema):
        pulsar_client.create_producer(pulsar_topic, schema=AvroSchema(Broken.Order))
