"""Skips by message id (PIP-423), with the ids that the official client's MessageId.serialize() writes."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..broker_process import is_pulsarium
from ..conftest import Launch
from .kinds import on_shared_types
from .traffic import assert_nothing_more, consume, payloads, receive, send_all

pytestmark = pytest.mark.skipif(not is_pulsarium(), reason="no released broker has PIP-423")

EARLIEST = pulsar.InitialPosition.Earliest


def skip(admin: Admin, topic: str, message_ids: Iterable[Any]) -> None:
    body = [base64.b64encode(message_id.serialize()).decode() for message_id in message_ids]
    path = topic.replace("://", "/", 1)
    admin.call("POST", f"/admin/v2/{path}/subscription/s/skipByMessageIds", body)


def subscribe(client: Any, topic: str, kind: Any, **options: Any) -> Any:
    return client.subscribe(topic, "s", kind, initial_position=EARLIEST, batch_index_ack_enabled=True, **options)


@pytest.mark.req("S423-86", "S423-37")
@on_shared_types
def test_ids_of_receipts(client: Any, admin: Admin, topic: str, kind: Any) -> None:
    consumer = subscribe(client, topic, kind)
    sent = payloads(5)
    producer = client.create_producer(topic, batching_enabled=False)
    one = producer.send(sent[0])
    ids = send_all(producer, sent[1:])
    consumer.close()
    skip(admin, topic, [one, ids[2]])
    consumer = subscribe(client, topic, kind)
    assert consume(consumer, 3) == [sent[1], sent[2], sent[4]]
    assert_nothing_more(consumer)
    consumer.close()  # closing sends the acknowledgements
    assert admin.backlog(topic, "s") == 0


@pytest.mark.req("S423-05", "S423-09", "S423-86")
@on_shared_types
def test_ids_in_batches(client: Any, admin: Admin, topic: str, kind: Any) -> None:
    consumer = subscribe(client, topic, kind)
    sent = payloads(20)
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_messages=10, batching_max_publish_delay_ms=60_000
    )
    receipts = send_all(producer, sent)
    ids = [message.message_id() for message in receive(consumer, 20)]
    consumer.close()
    skip(admin, topic, [receipts[1], ids[3], *ids[10:19]])
    consumer = subscribe(client, topic, kind)
    left = [payload for number, payload in enumerate(sent) if number not in {1, 3, *range(10, 19)}]
    assert consume(consumer, len(left)) == left
    assert_nothing_more(consumer)


@pytest.mark.req("S423-52")
@on_shared_types
def test_a_skipped_message_that_was_nacked_is_not_redelivered(client: Any, admin: Admin, topic: str, kind: Any) -> None:
    consumer = subscribe(client, topic, kind, negative_ack_redelivery_delay_ms=200)
    sent = payloads(3)
    send_all(client.create_producer(topic, batching_enabled=False), sent)
    messages = receive(consumer, 3)
    skip(admin, topic, [messages[1].message_id()])
    for message in messages:
        consumer.negative_acknowledge(message)
    assert sorted(consume(consumer, 2)) == [sent[0], sent[2]]
    assert_nothing_more(consumer, 1000)


@pytest.mark.req("S423-55", "S423-86")
def test_ids_of_partitions(client: Any, admin: Admin, topic: str) -> None:
    admin.create_partitioned(topic, 3)
    consumer = subscribe(client, topic, pulsar.ConsumerType.Shared)
    sent = payloads(9)
    ids = send_all(client.create_producer(topic, batching_enabled=False), sent)
    assert len({message_id.partition() for message_id in ids}) == 3
    consumer.close()
    skip(admin, topic, ids[::2])
    consumer = subscribe(client, topic, pulsar.ConsumerType.Shared)
    assert sorted(consume(consumer, 4)) == sent[1::2]
    assert_nothing_more(consumer)


@pytest.mark.req("S423-40", "S423-41")
@on_shared_types
def test_a_delayed_message_that_is_skipped_never_comes(launch: Launch, kind: Any) -> None:
    address = launch().address
    admin = Admin(address.admin_url)
    with closing(pulsar.Client(address.service_url)) as client:
        topic = "persistent://public/default/skipped"
        consumer = subscribe(client, topic, kind)
        sent = payloads(2)
        ids = send_all(client.create_producer(topic, batching_enabled=False), sent, deliver_after=timedelta(hours=1))
        skip(admin, topic, ids[:1])
        admin.call("POST", "/lab/clock/advance", {"seconds": 3600})
        assert consume(consumer, 1) == sent[1:]
        assert_nothing_more(consumer)


@pytest.mark.req("S423-54")
def test_a_skip_survives_a_kill_of_the_broker(launch: Launch, data: str) -> None:
    broker = launch("--data", data)
    client = pulsar.Client(broker.address.service_url)
    name = "persistent://public/default/skipped"
    consumer = subscribe(client, name, pulsar.ConsumerType.Shared)
    sent = payloads(6)
    producer = client.create_producer(
        name, batching_enabled=True, batching_max_messages=3, batching_max_publish_delay_ms=60_000
    )
    ids = send_all(producer, sent)
    consumer.close()
    skip(Admin(broker.address.admin_url), name, [ids[1], *ids[3:]])
    client.close()
    broker.kill()
    broker = launch("--data", data)
    client = pulsar.Client(broker.address.service_url)
    consumer = subscribe(client, name, pulsar.ConsumerType.Shared)
    assert consume(consumer, 2) == [sent[0], sent[2]]
    assert_nothing_more(consumer)
    client.close()
