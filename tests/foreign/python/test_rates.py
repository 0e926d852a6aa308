"""The official client with a broker that limits publish and dispatch rates (B-42)."""

from __future__ import annotations

import time
from typing import Any

import pulsar
import pytest

from ..admin import Admin
from .traffic import payloads, receive

pytestmark = pytest.mark.req("B-42")


def test_sends_take_the_time_that_the_rate_asks_for(client: Any, admin: Admin, own_namespace: str) -> None:
    admin.call("POST", f"/admin/v2/namespaces/{own_namespace}/publishRate", {"publishThrottlingRateInMsg": 20})
    producer = client.create_producer(f"persistent://{own_namespace}/slow", batching_enabled=False)
    results: list[Any] = []
    began = time.monotonic()
    for payload in payloads(30):
        producer.send_async(payload, lambda result, _: results.append(result))
    producer.flush()
    assert time.monotonic() - began > 0.4
    assert results == [pulsar.Result.Ok] * 30  # the broker delays messages, and refuses none


def test_messages_come_as_fast_as_the_rate_allows(client: Any, admin: Admin, own_namespace: str) -> None:
    topic = f"persistent://{own_namespace}/slow"
    admin.call("POST", f"/admin/v2/namespaces/{own_namespace}/dispatchRate", {"dispatchThrottlingRateInMsg": 10})
    client.subscribe(topic, "s").close()
    sent = payloads(15)
    producer = client.create_producer(topic, batching_enabled=False)
    for payload in sent:
        producer.send(payload)
    began = time.monotonic()
    consumer = client.subscribe(topic, "s")
    got = receive(consumer, 15)
    assert [message.data() for message in got] == sent
    assert time.monotonic() - began > 0.9
