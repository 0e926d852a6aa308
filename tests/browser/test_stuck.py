"""A person who has never seen the console finds why a message is stuck, and moves it on."""

from __future__ import annotations

from collections.abc import Iterator

import pulsar
import pytest

from pulsarium.broker.testing import PulsarBroker, running
from tests.browser.chromium import Page
from tests.browser.stage import client_of

pytestmark = pytest.mark.heavy

CLICKS = 4  # what a person does in two minutes without reading docs


@pytest.fixture
def broker() -> Iterator[PulsarBroker]:
    """Return a broker of its own: the overview shows every late subscription, and a clock stays where it was moved."""
    with running() as broker:
        yield broker


def test_a_person_finds_why_a_message_is_stuck_and_moves_it_on(page: Page, broker: PulsarBroker) -> None:
    """The person reads only what the page shows, and clicks only on words that follow from it."""
    with client_of(broker) as client:
        consumer = client.subscribe("orders", "billing", pulsar.ConsumerType.Shared, receiver_queue_size=2)
        producer = client.create_producer("orders")
        for number in range(5):
            producer.send(f"order {number}".encode())
        consumer.receive(timeout_millis=60_000)
        broker.clock.advance(90)

        page.go(broker.admin_url)
        page.sees("No progress for longer than a minute")
        page.sees("no consumer has permits left: the client sent no FLOW")
        page.click("See why, and move it on")
        page.click("Why is the next message not delivered?")
        page.sees("has no permits left: its client sent no FLOW")
        page.click("Clear backlog")
        page.sees("pulsarium admin topics clear-backlog persistent://public/default/orders -s billing")
        page.sees("POST /admin/v2/persistent/public/default/orders/subscription/billing/skip_all")
        page.click("Clear backlog", within="dialog")
        page.sees("Done: Clear backlog")
        page.sees("Nothing waits: the backlog is empty.")
        assert page.clicks <= CLICKS
        assert broker.why("orders", "billing").details["backlog"] == 0
        consumer.close()


def test_a_consumer_that_never_acknowledges_is_amber(page: Page, broker: PulsarBroker) -> None:
    with client_of(broker) as client:
        consumer = client.subscribe("silent", "sub", pulsar.ConsumerType.Shared)
        client.create_producer("silent").send(b"x")
        consumer.receive(timeout_millis=60_000)
        page.go(f"{broker.admin_url}/#/topic/persistent/public/default/silent")
        page.sees("Everything was delivered; acknowledgements are awaited.")
        broker.clock.advance(90)
        page.until("document.querySelector('[data-subscription=sub].late')")
        page.sees("everything was delivered, but the consumers have not acknowledged it")
        consumer.close()
