import os

import pulsar
import pytest


@pytest.fixture
def service_url(request):
    """Return the broker that PULSAR_SERVICE_URL names, such as a real one. Without the variable, start Pulsarium."""
    return os.environ.get("PULSAR_SERVICE_URL") or request.getfixturevalue("pulsar_broker").service_url


def test_an_order_reaches_billing(service_url):
    client = pulsar.Client(service_url)
    consumer = client.subscribe("orders", "billing")
    client.create_producer("orders").send(b"3 apples")
    message = consumer.receive(timeout_millis=30_000)
    assert message.data() == b"3 apples"
    consumer.acknowledge(message)
    client.close()
