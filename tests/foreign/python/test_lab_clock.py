"""Advances of the lab's clock by days, with the official client."""

from __future__ import annotations

from datetime import timedelta

import pulsar
import pytest

from ..admin import Admin
from ..broker_process import is_pulsarium
from ..conftest import Launch

WEEK = 7 * 86_400


@pytest.mark.skipif(not is_pulsarium(), reason="only Pulsarium has a clock to steer")
def test_the_official_client_gets_a_message_of_next_week_now(launch: Launch) -> None:
    address = launch().address
    lab = Admin(address.admin_url)
    client = pulsar.Client(address.service_url)
    try:
        consumer = client.subscribe("t", "s", pulsar.ConsumerType.Shared)
        producer = client.create_producer("t")
        producer.send(b"week", deliver_after=timedelta(seconds=WEEK))
        with pytest.raises(pulsar.Timeout):
            consumer.receive(100)
        state = lab.call("POST", "/lab/clock/advance", {"seconds": WEEK})
        assert consumer.receive(30_000).data() == b"week"
        assert state["offsetMs"] == WEEK * 1000
    finally:
        client.close()
