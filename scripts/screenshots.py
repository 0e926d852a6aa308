"""Make the pictures of docs/images, or of all pages: the console of a running broker, in headless Chromium.

usage: scripts/screenshots [FOLDER]          the pictures of the docs, to FOLDER (docs/images)
       scripts/screenshots --all FOLDER      every page in both themes and on a phone, to be looked at

Starts a broker, lets clients publish and consume for a while, so that the charts have something to draw, and takes the
pictures. Needs Chromium on the PATH (Debian: chromium).
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final, NamedTuple

import pulsar
import pulsar.schema

from pulsarium.broker.testing import PulsarBroker, running
from tests.browser.chromium import chromium
from tests.browser.stage import asked

WIDTH: Final = 1440
SECONDS: Final = 66  # of traffic before the pictures, so that what makes no progress is late
BUSY: Final = 0.02  # seconds between two messages
ORDERS: Final = "#/topic/persistent/public/default/orders"
PAYMENTS: Final = "#/topic/persistent/public/default/payments"
INVOICES: Final = "#/topic/persistent/public/default/invoices"


class Picture(NamedTuple):
    """A page: its address, a text that it shows, its height in pixels, and clicks on the way."""

    where: str
    text: str
    height: int = 900
    clicks: tuple[str, ...] = ()


class Look(NamedTuple):
    """A kind of picture: the end of its name, its width, its theme, and its height, or 0 for that of the page."""

    end: str
    width: int
    theme: str
    height: int = 0


LOOKS: Final = (Look("", WIDTH, "light"), Look("-dark", WIDTH, "dark"), Look("-phone", 390, "light", 844))
PICTURES: Final = {
    "overview": Picture("", "Topics that move most"),
    "topics": Picture("#/topics", "invoices"),
    "topics-by-backlog": Picture("#/topics?sort=backlog", "invoices"),
    "topic": Picture(PAYMENTS, "Messages a second"),
    "partitioned": Picture(f"{ORDERS}?subscription=billing", "Published to each partition", 1100),
    "stuck": Picture(f"{INVOICES}?subscription=billing", "No progress for", 1000),
    "why": Picture(f"{INVOICES}?subscription=billing", "Facts", 1000, ("Why is the next message not delivered?",)),
    "messages": Picture(f"{ORDERS}/messages?subscription=billing", "customer", 900),
    "message": Picture(f"{ORDERS}/messages?subscription=billing", "Copy as a test", 900, ("message ",)),
    "search": Picture(f"{ORDERS}/messages?where=total+%3E+900", "looked at"),
    "publish": Picture(ORDERS, "version", 900, ("Publish a message",)),
    "storage": Picture(f"{INVOICES}/storage", "Mark-delete position"),
    "schema": Picture("#/topic/persistent/public/default/orders/schema", "Version"),
    "policies": Picture(f"{PAYMENTS}/policies", "retention"),
    "policy": Picture(f"{PAYMENTS}/policies", "retentionTimeInMinutes, in minutes", 900, ("Edit retention",)),
    "seek": Picture(f"{PAYMENTS}?subscription=ledger", "command line", 900, ("Seek",)),
    "skip": Picture(f"{INVOICES}?subscription=billing", "command line", 900, ("Skip one message",)),
    "scalable": Picture("#/topic/topic/public/default/scaled", "Scaling:"),
    "connections": Picture("#/connections", "Pulsar-CPP"),
    "namespaces": Picture("#/namespaces", "public/default"),
    "namespace": Picture("#/namespace/public/default", "retention"),
    "transactions": Picture("#/transactions", "Transactions"),
    "lab": Picture("#/lab", "Recipes", 1200),
    "missing": Picture("#/topic/persistent/public/default/order", "There is no topic"),
}
IN_DOCS: Final = ("overview", "partitioned", "stuck", "messages", "publish", "storage", "lab")
DARK_IN_DOCS: Final = ("overview",)


class Order(pulsar.schema.Record):  # type: ignore[misc]
    """An order, as a shop writes it."""

    customer = pulsar.schema.String(required=True)
    total = pulsar.schema.Integer(required=True)
    city = pulsar.schema.String()


NAMES: Final = ("Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald")
CITIES: Final = ("London", "New York", "Rotterdam", "Zürich")


@contextmanager
def traffic(broker: PulsarBroker, client: pulsar.Client) -> Iterator[None]:
    """Set the stage, and publish and consume until the end of the block."""
    chance = random.Random(7)
    asked(broker, "admin/v2/persistent/public/default/orders/partitions", "PUT", 4)
    asked(broker, "admin/v2/scalable/public/default/scaled?numInitialSegments=2", "PUT", {})
    asked(broker, "admin/v2/scalable/public/default/scaled/split/0", "POST")
    for name in ("returns", "audit", "newsletter"):
        broker.create_topic(f"public/default/{name}")
    orders = client.create_producer("orders", schema=pulsar.schema.AvroSchema(Order), producer_name="shop")
    payments, mails = client.create_producer("payments"), client.create_producer("mails")
    billing = client.subscribe("orders", "billing", pulsar.ConsumerType.Shared, consumer_name="billing-1")
    search = client.subscribe("orders", "search", pulsar.ConsumerType.KeyShared, consumer_name="index-1")
    ledger = client.subscribe("payments", "ledger", pulsar.ConsumerType.Failover, consumer_name="ledger-1")
    client.subscribe("payments", "audit").close()
    mail = client.subscribe("mails", "mailer", pulsar.ConsumerType.Shared, consumer_name="mailer-1")
    stuck = client.subscribe("invoices", "billing", pulsar.ConsumerType.Shared, receiver_queue_size=10)
    invoices = client.create_producer("invoices")
    for number in range(40):
        invoices.send(f'{{"invoice": {number}, "total": {chance.randrange(20, 900)}}}'.encode(), partition_key="EU")
    received = [stuck.receive(timeout_millis=10_000) for _ in range(4)]
    stuck.acknowledge(received[2])
    over = Event()

    def publish() -> None:
        number = 0
        while not over.wait(BUSY * chance.uniform(0.3, 1.7)):
            number += 1
            name = chance.choice(NAMES[: 1 + number % len(NAMES)])
            total = chance.randrange(5, 1000)
            orders.send_async(Order(customer=name, total=total, city=chance.choice(CITIES)), None, partition_key=name)
            if number % 2:
                payments.send_async(f'{{"payment": {number}, "total": {total}}}'.encode(), None, partition_key=name)
            if number % 5 == 0:
                mails.send_async(f"Dear {name}, thank you for your order {number}.".encode(), None)

    def consume(consumer: pulsar.Consumer, act: Callable[[int, pulsar.Message], None]) -> None:
        number = 0
        while not over.is_set():
            try:
                message = consumer.receive(timeout_millis=200)
            except pulsar.Timeout:
                continue
            number += 1
            act(number, message)

    def acknowledge(consumer: pulsar.Consumer, every: int) -> Callable[[int, pulsar.Message], None]:
        def act(number: int, message: pulsar.Message) -> None:
            if number % every:
                consumer.acknowledge(message)

        return act

    works = [
        Thread(target=publish),
        *(
            Thread(target=consume, args=(each, acknowledge(each, every)))
            for each, every in ((billing, 7), (search, 1_000), (ledger, 1_000_000), (mail, 1_000_000))
        ),
    ]
    for work in works:
        work.start()
    try:
        yield
    finally:
        over.set()
        for work in works:
            work.join()


def pictures(broker: PulsarBroker, folder: Path, names: tuple[str, ...], look: Look) -> None:
    """Write pictures of a broker to a folder."""
    with chromium() as browser:
        for name in names:
            picture = PICTURES[name]
            page = browser.page(width=look.width, height=look.height or picture.height, theme=look.theme)
            page.go(f"{broker.admin_url}/{picture.where}")
            for click in picture.clicks:
                page.click(click)
            page.sees(picture.text)
            time.sleep(0.4)  # charts come with the answer after the first
            page.picture(folder / f"{name}{look.end}.png")
            page.close()


def main() -> None:
    """Start a broker, and make the pictures."""
    words = sys.argv[1:]
    if {"-h", "--help"} & set(words):
        print((__doc__ or "").strip())
        return
    every = "--all" in words
    (where,) = [word for word in words if not word.startswith("-")] or ["docs/images"]
    folder = Path(where).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with running() as broker:
        client = pulsar.Client(broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        with traffic(broker, client):
            time.sleep(SECONDS)
            asked(
                broker,
                "lab/faults",
                "POST",
                {"command": "ACK", "action": {"kind": "delay", "seconds": 0.1}, "count": 5},
            )
            for look, in_docs in zip(LOOKS, (IN_DOCS, DARK_IN_DOCS, ()), strict=True):
                pictures(broker, folder, tuple(PICTURES) if every else in_docs, look)
        client.close()


if __name__ == "__main__":
    main()
