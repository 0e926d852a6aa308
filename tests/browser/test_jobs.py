"""The eleven jobs that people open a console for, each from the overview, by words that the pages show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

import pulsar
import pytest

from pulsarium.broker.testing import PulsarBroker, running
from tests.browser.chromium import Page
from tests.browser.stage import asked, client_of, publish

pytestmark = pytest.mark.heavy

CLICKS: Final = 4
ORDERS: Final = "public/default/orders"


@pytest.fixture
def broker() -> Iterator[PulsarBroker]:
    """Return a broker of its own: the overview shows what moves and what is stuck on it."""
    with running() as broker:
        yield broker


def go(page: Page, broker: PulsarBroker) -> None:
    """Open the overview, with no click so far."""
    page.go(broker.admin_url)
    page.clicks = 0


def schema_of(broker: PulsarBroker, topic: str, kind: str, *fields: str) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": f, "type": "int", "default": 0} for f in fields]}
    body = {"type": kind, "schema": json.dumps(record), "properties": {}}
    asked(broker, f"admin/v2/schemas/{topic}/schema", "POST", body)


def test_find_a_topic(page: Page, broker: PulsarBroker) -> None:
    for number in range(30):
        broker.create_topic(f"public/default/topic-{number:02}")
    go(page, broker)
    page.click("Find")
    page.fill("Find", "pic-17", within="dialog[open]")
    page.click("public/default/topic-17", within="dialog[open]")
    page.until("document.querySelector('main h2')?.textContent === 'public/default/topic-17'")
    assert page.clicks <= CLICKS


@pytest.mark.parametrize("kind", ["JSON", "AVRO"])
def test_peek_at_a_decoded_message(kind: str, page: Page, broker: PulsarBroker) -> None:
    broker.create_topic(ORDERS)
    schema_of(broker, ORDERS, kind, "total")
    asked(broker, f"pulsarium/publish/persistent/{ORDERS}", "POST", {"value": {"total": 77}})
    go(page, broker)
    page.click("public/default/orders")
    page.click("Messages")
    page.sees('{"total": 77}')
    page.click("message ")
    page.sees('"total": 77')
    page.sees(kind)
    assert page.clicks <= CLICKS


def test_publish(page: Page, broker: PulsarBroker) -> None:
    publish(broker, ORDERS, 1)
    go(page, broker)
    page.click("public/default/orders")
    page.click("Publish a message")
    page.fill("Payload", "by hand")
    page.click("Publish", within="dialog[open]")
    page.sees("Done: published as")
    assert page.clicks <= CLICKS


def test_see_the_lag_over_time(page: Page, broker: PulsarBroker) -> None:
    publish(broker, ORDERS, 5)
    go(page, broker)
    page.click("public/default/orders")
    page.until("document.querySelector('[data-subscription=sub] svg[aria-label^=\"Lag: backlog 5\"]')")
    page.sees("oldest waits")
    assert page.clicks <= CLICKS


def test_see_who_is_connected(page: Page, broker: PulsarBroker) -> None:
    with client_of(broker) as client:
        client.create_producer("orders")
        go(page, broker)
        page.click("Connections")
        page.sees("Pulsar-CPP")
        page.sees("orders")
    assert page.clicks <= CLICKS


def backlog(broker: PulsarBroker, subscription: str = "sub") -> int:
    found: int = broker.why("orders", subscription).details["backlog"]
    return found


def test_skip_a_poison_message(page: Page, broker: PulsarBroker) -> None:
    with client_of(broker) as client:
        consumer = client.subscribe("orders", "sub", pulsar.ConsumerType.Shared, negative_ack_redelivery_delay_ms=1)
        client.create_producer("orders").send(b"poison")
        for _ in range(8):
            consumer.negative_acknowledge(consumer.receive(timeout_millis=60_000))
        broker.clock.advance(90)
        go(page, broker)
        page.click("See why, and move it on")
        page.click("Skip one message")
        page.sees("poison")  # the act shows what it will touch
        page.click("Skip one message", within="dialog[open]")
        page.sees("Done: Skip one message")
        assert backlog(broker) == 0
    assert page.clicks <= CLICKS


def test_reset_the_cursor_of_a_partitioned_topic(page: Page, broker: PulsarBroker) -> None:
    asked(broker, f"admin/v2/persistent/{ORDERS}/partitions", "PUT", 3)
    with client_of(broker) as client:
        consumer = client.subscribe("orders", "sub", pulsar.ConsumerType.Shared)
        producer = client.create_producer("orders")
        for number in range(9):
            producer.send(b"x", partition_key=str(number))
            consumer.acknowledge(consumer.receive(timeout_millis=60_000))
    go(page, broker)
    page.click("public/default/orders")
    page.click("Go back in time")
    page.click("Go back in time", within="dialog[open]")
    page.sees("Done: Go back in time")
    stats = asked(broker, f"admin/v2/persistent/{ORDERS}/partitioned-stats")
    assert stats["subscriptions"]["sub"]["msgBacklog"] == 9
    assert page.clicks <= CLICKS


def test_change_a_policy(page: Page, broker: PulsarBroker) -> None:
    publish(broker, ORDERS, 1)
    go(page, broker)
    page.click("public/default/orders")
    page.click("Policies")
    page.click("Edit messageTTL")
    page.fill("Value of the topic, in seconds", "60", within="dialog[open]")
    page.click("Set", within="dialog[open]")
    page.sees("Done: messageTTL")
    assert asked(broker, f"admin/v2/persistent/{ORDERS}/messageTTL") == 60
    assert page.clicks <= CLICKS


def test_compare_versions_of_a_schema(page: Page, broker: PulsarBroker) -> None:
    broker.create_topic(ORDERS)
    schema_of(broker, ORDERS, "AVRO", "old")
    schema_of(broker, ORDERS, "AVRO", "old", "new")
    asked(broker, f"pulsarium/publish/persistent/{ORDERS}", "POST", {"value": {"old": 1, "new": 2}})
    go(page, broker)
    page.click("public/default/orders")
    page.click("Schema")
    page.sees("Compared with version 0:")
    assert page.clicks <= CLICKS


def test_watch_messages_as_they_come(page: Page, broker: PulsarBroker) -> None:
    publish(broker, ORDERS, 1)
    go(page, broker)
    page.click("public/default/orders")
    page.click("Messages")
    page.click("Follow live")
    page.sees("Waiting for new messages")
    with client_of(broker) as client:
        client.create_producer("orders").send(b"right now")
    page.sees("right now")
    assert page.clicks <= CLICKS


def held(client: pulsar.Client) -> pulsar.Consumer:
    consumer = client.subscribe("orders", "sub", pulsar.ConsumerType.Shared, receiver_queue_size=1)
    client.create_producer("orders").send(b"x")
    consumer.receive(timeout_millis=60_000)
    return consumer


WAITS: Final[dict[str, tuple[Callable[[pulsar.Client], object], str]]] = {
    "nobody consumes": (lambda client: client.subscribe("orders", "sub").close(), "no consumer is connected"),
    "nothing is acknowledged": (held, "has not acknowledged"),
}


@pytest.mark.parametrize("why", WAITS)
def test_find_out_why_a_consumer_gets_nothing(why: str, page: Page, broker: PulsarBroker) -> None:
    stage, said = WAITS[why]
    with client_of(broker) as client:
        keep = stage(client)
        client.create_producer("orders").send(b"y")
        broker.clock.advance(90)
        go(page, broker)
        page.click("See why, and move it on")
        page.click("Why is the next message not delivered?")
        page.until(f"document.querySelector('[data-answer]')?.innerText.includes({json.dumps(said)})")
        del keep
    assert page.clicks <= CLICKS
