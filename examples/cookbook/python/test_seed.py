import json
from pathlib import Path

import pytest

SEED = Path(__file__).with_name("orders.toml")


@pytest.fixture
def orders(pulsar_broker):
    pulsar_broker.seed(SEED)  # again for each test: what exists already stays
    return "persistent://shop/orders/new"


def test_the_seeded_order_waits_for_billing(pulsar_client, orders):
    message = pulsar_client.subscribe(orders, "billing").receive(timeout_millis=30_000)
    assert json.loads(message.data()) == {"customer": "Ada", "fruit": "apples"}
