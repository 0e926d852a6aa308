"""Make the pictures of docs/images: the page at / of a running broker, in headless Chromium.

usage: scripts/screenshots [FOLDER]

Starts a broker, lets clients publish and consume, and writes overview.png and stuck.png to FOLDER (docs/images).
Needs Chromium on the PATH (Debian: chromium).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pulsar

from pulsarium.broker.testing import PulsarBroker, running

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 120
WIDTH = 900
PICTURES = {"overview.png": 640, "stuck.png": 275}
"""Each picture with its height in pixels. The second one ends below the first subscription."""


def chromium() -> str:
    """Return the browser's command, or end the program when there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        sys.exit("scripts/screenshots: no Chromium on the PATH: install it (Debian: chromium)")
    return found


def set_the_stage(client: pulsar.Client) -> None:
    """Publish to three topics. One subscription is up to date, one has no consumer, and one has a stuck consumer."""
    stuck = client.subscribe("orders", "billing", pulsar.ConsumerType.Shared, receiver_queue_size=10)
    client.subscribe("orders", "mail").close()
    orders = client.create_producer("orders")
    for number in range(40):
        orders.send(f"order {number}".encode())
    stuck.receive(timeout_millis=10_000)  # the first of ten, and none is acknowledged
    reader = client.subscribe("payments", "ledger")
    payments = client.create_producer("payments")
    for number in range(25):
        payments.send(f"payment {number}".encode())
        reader.acknowledge(reader.receive(timeout_millis=10_000))
    client.create_producer("parcels").send(b"parcel")


def take(url: str, picture: Path, height: int, profile: Path) -> None:
    """Write a picture of a page."""
    options = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--no-proxy-server"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *(f"--user-data-dir={profile}", f"--window-size={WIDTH},{height}", "--virtual-time-budget=5000"),
        f"--screenshot={picture}",
    )
    subprocess.run([chromium(), *options, url], check=True, capture_output=True, timeout=SECONDS)


def pictures(broker: PulsarBroker, folder: Path) -> None:
    """Write all pictures of a broker to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        for name, height in PICTURES.items():
            take(broker.admin_url, folder / name, height, Path(profile))


def main() -> None:
    """Start a broker, and make the pictures."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print((__doc__ or "").strip())
        return
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images").resolve()
    with running() as broker:
        client = pulsar.Client(broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        set_the_stage(client)
        pictures(broker, folder)
        client.close()


if __name__ == "__main__":
    main()
