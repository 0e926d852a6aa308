"""Faults of the lab on the wire, and the official client's reaction.

Advances of the lab's clock by days, with the official client.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pulsar
import pytest

from ..admin import Admin
from ..broker_process import is_pulsarium
from ..conftest import Launch
from .traffic import Outbox, assert_nothing_more, consume, payloads, send_all

FAULTS = "/lab/faults"
# With drop, the unexpected receipt of the next message ends the connection. With close, the fault does.
SENT_AGAIN = {"drop": [b"0", b"1", b"0", b"1"], "close": [b"0", b"0", b"1"]}


@pytest.fixture
def faults(admin: Admin) -> Iterator[Admin]:
    """Yield a client of the broker's REST API, and delete all faults after the test."""
    yield admin
    admin.call("DELETE", FAULTS)


def add(admin: Admin, topic: str, command: str, kind: str, **rule: Any) -> int:
    action = {"kind": kind, **rule.pop("action", {})}
    return int(admin.call("POST", FAULTS, {"command": command, "action": action, "topic": topic, **rule})["id"])


@pytest.mark.parametrize("deduplicates", [True, False], ids=["deduplication", "none"])
@pytest.mark.parametrize("kind", SENT_AGAIN)
@pytest.mark.skipif(not is_pulsarium(), reason="no other broker has faults")
def test_a_lost_receipt_is_sent_for_again(
    client: Any, faults: Admin, own_namespace: str, kind: str, deduplicates: bool
) -> None:
    """The client reconnects and sends messages without a receipt again. Only deduplication prevents duplicates.

    A consumer on the connection that ends could get a message before and after it: this one comes later.
    """
    if deduplicates:
        faults.call("POST", f"/admin/v2/namespaces/{own_namespace}/deduplication", True)
    topic = f"persistent://{own_namespace}/t"
    producer = client.create_producer(topic, "p", batching_enabled=False)
    outbox = Outbox(producer)
    fault = add(faults, topic, "SEND", kind, stage="after")
    outbox.send(b"0")
    assert faults.call("GET", f"{FAULTS}/{fault}/wait")["hits"] == 1
    outbox.send(b"1")
    assert len(outbox.wait()) == 2
    consumer = client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
    stored = [b"0", b"1"] if deduplicates else SENT_AGAIN[kind]
    assert consume(consumer, len(stored)) == stored
    assert_nothing_more(consumer)


@pytest.mark.skipif(not is_pulsarium(), reason="no other broker has faults")
def test_the_official_client_gives_up_a_receipt_that_never_comes(client: Any, faults: Admin, topic: str) -> None:
    """The client sends nothing else, so that no later receipt shows it the loss."""
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, send_timeout_millis=500)
    add(faults, topic, "SEND", "drop", stage="after", count=None)
    with pytest.raises(pulsar.Timeout):
        producer.send(b"here all the same")
    assert consumer.receive(30_000).data() == b"here all the same"


@pytest.mark.skipif(not is_pulsarium(), reason="no other broker has faults")
def test_a_topic_that_is_being_moved(client: Any, faults: Admin, topic: str) -> None:
    """The client tries PRODUCER again after ServiceNotReady.

    C++ 4.2.0 does not try SUBSCRIBE again: the consumer believes that it is connected, until its operation times out.
    """
    consumer = client.subscribe(topic, "s")
    fault = add(faults, topic, "PRODUCER", "answer", action={"error": "ServiceNotReady"}, count=2)
    client.create_producer(topic).send(b"in the end")
    assert consumer.receive(30_000).data() == b"in the end"
    assert faults.call("GET", f"{FAULTS}/{fault}")["hits"] == 2


@pytest.mark.req("S429-18")
@pytest.mark.skipif(not is_pulsarium(), reason="no other broker has faults")
def test_a_broker_that_cannot_read_its_last_entry(client: Any, faults: Admin, topic: str) -> None:
    """A broker without PIP-429 gives this answer when its compacted ledger ends with an encrypted batch."""
    client.create_producer(topic).send(b"a")
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    reader.read_next(30_000)  # the reader does not ask the broker while its queue has messages
    words = "Failed to read last entry of the compacted Ledger Invalid unknown tag type: 3"
    add(faults, topic, "GET_LAST_MESSAGE_ID", "answer", action={"error": "MetadataError", "message": words})
    with pytest.raises(pulsar.BrokerMetadataError):
        reader.has_message_available()
    assert not reader.has_message_available()


@pytest.mark.skipif(not is_pulsarium(), reason="no other broker has faults")
def test_a_slow_broker_keeps_its_order(client: Any, faults: Admin, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=False)
    add(faults, topic, "MESSAGE", "delay", action={"seconds": 0.05}, every=5, count=None)
    send_all(producer, payloads(20))
    assert consume(consumer, 20) == payloads(20)


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
