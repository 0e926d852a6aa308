import asyncio

import pytest

from pulsarium.client import InitialPosition, connect


async def bill(url, orders, invoices):
    """Receive an order, publish its invoice, and acknowledge the order: all three, or nothing."""
    async with (
        connect(url) as client,
        client.create_producer(invoices) as producer,
        client.subscribe(orders, "billing", initial_position=InitialPosition.Earliest) as consumer,
        client.transaction(timeout=30) as txn,
    ):
        order = await consumer.receive()
        await producer.send(b"pay " + order.data(), txn=txn)
        await consumer.acknowledge(order, txn=txn)
        if order.data() == b"no order":
            raise ValueError(order.data())


def test_an_order_and_its_invoice_are_committed_together(pulsar_broker, pulsar_client, pulsar_topic, pulsar_faults):
    invoices = pulsar_client.subscribe(f"{pulsar_topic}-invoices", "mail")
    pulsar_client.create_producer(pulsar_topic).send(b"3 apples")
    cut = pulsar_faults.add("close", "END_TXN", everywhere=True)  # the connection ends before the broker has the commit

    asyncio.run(bill(pulsar_broker.service_url, pulsar_topic, f"{pulsar_topic}-invoices"))

    assert cut.hits == 1
    assert invoices.receive(timeout_millis=30_000).data() == b"pay 3 apples"
    pulsar_broker.assert_acked(pulsar_topic, "billing", 1)


def test_an_error_leaves_the_order_and_no_invoice(pulsar_broker, pulsar_client, pulsar_topic):
    pulsar_client.subscribe(f"{pulsar_topic}-invoices", "mail")
    pulsar_client.create_producer(pulsar_topic).send(b"no order")
    with pytest.raises(ValueError, match="no order"):
        asyncio.run(bill(pulsar_broker.service_url, pulsar_topic, f"{pulsar_topic}-invoices"))
    pulsar_broker.assert_acked(pulsar_topic, "billing", 0)
    assert pulsar_broker.why(f"{pulsar_topic}-invoices", "mail").reason == "caught-up"
