"""Make the pictures of docs/images: the console of a running broker, in headless Chromium.

usage: scripts/screenshots [FOLDER]

Starts a broker, lets clients publish and consume, and writes overview.png, stuck.png, messages.png, storage.png and
lab.png to FOLDER (docs/images). Needs Chromium on the PATH (Debian: chromium).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pulsar

from pulsarium.broker.testing import PulsarBroker, running
from tests.browser.chromium import chromium

WIDTH = 1000
TOPIC = "#/topic/persistent/public/default/orders"
PICTURES = {
    "overview.png": ("", "Waiting for longer than a minute", 420),
    "stuck.png": (TOPIC, "Move on", 430),
    "messages.png": (f"{TOPIC}/messages?subscription=billing&start=next", "order 1", 560),
    "storage.png": (f"{TOPIC}/storage", "Mark-delete position", 560),
    "lab.png": ("#/lab", "Masks", 620),
}
"""Each picture with its address, a text that it shows, and its height in pixels."""


def set_the_stage(client: pulsar.Client) -> None:
    """Publish to three topics. One subscription is up to date, one has no consumer, and one has a stuck consumer."""
    stuck = client.subscribe("orders", "billing", pulsar.ConsumerType.Shared, receiver_queue_size=10)
    client.subscribe("orders", "mail").close()
    orders = client.create_producer("orders")
    for number in range(40):
        orders.send(f"order {number}".encode(), partition_key=f"customer-{number % 3}")
    received = [stuck.receive(timeout_millis=10_000) for _ in range(4)]
    stuck.acknowledge(received[2])
    reader = client.subscribe("payments", "ledger")
    payments = client.create_producer("payments")
    for number in range(25):
        payments.send(f"payment {number}".encode())
        reader.acknowledge(reader.receive(timeout_millis=10_000))
    client.create_producer("portions").send(b"portion")


def pictures(broker: PulsarBroker, folder: Path) -> None:
    """Write all pictures of a broker to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for name, (where, text, height) in PICTURES.items():
            page = browser.page(width=WIDTH, height=height)
            page.go(f"{broker.admin_url}/{where}")
            page.sees(text)
            page.picture(folder / name)
            page.close()


def main() -> None:
    """Start a broker, and make the pictures."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print((__doc__ or "").strip())
        return
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images").resolve()
    with running() as broker:
        client = pulsar.Client(broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        set_the_stage(client)
        broker.clock.advance(90)
        pictures(broker, folder)
        client.close()


if __name__ == "__main__":
    main()
