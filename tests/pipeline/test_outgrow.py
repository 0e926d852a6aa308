"""Commands of docs/outgrow.md move a topic with its subscription from Pulsarium to a real Pulsar."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest
from pulsar.schema import JsonSchema, Record, String

from tests.docs.blocks import ROOT, TESTED, blocks
from tests.foreign.admin import Admin
from tests.foreign.broker_process import PULSAR, PULSARIUM, Address, BrokerProcess
from tests.foreign.toolchains import REFERENCE, require
from yardsticks.servers.reference.conf import CONFIG, WITHOUT_TRANSACTIONS, changed

COUNT = 10
WAIT_MS = 30_000

pytestmark = [pytest.mark.foreign, pytest.mark.heavy]


class Order(Record):  # type: ignore[misc]
    item = String()


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Address]:
    process = BrokerProcess(tmp_path / "old", command=PULSARIUM)
    yield process.address
    assert process.stop() == 0


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Address]:
    require(REFERENCE)
    conf = tmp_path / "broker.conf"
    conf.write_text(changed(CONFIG.read_text(), WITHOUT_TRANSACTIONS))
    process = BrokerProcess(tmp_path / "new", ["--config", str(conf)], command=PULSAR)
    yield process.address
    assert process.stop(40.0) == 0


def use_for_a_while(broker: Address) -> set[str]:
    """Publish orders, acknowledge the first ones of each partition, and return the items of the others."""
    Admin(broker.admin_url).create_partitioned("persistent://public/default/orders", 2)
    client = pulsar.Client(broker.service_url)
    consumer = client.subscribe("orders", "billing", schema=JsonSchema(Order))
    producer = client.create_producer("orders", schema=JsonSchema(Order))
    for number in range(COUNT):
        producer.send(Order(item=f"item {number}"), partition_key=f"customer {number}", event_timestamp=number + 1)
    received = [consumer.receive(WAIT_MS) for _ in range(COUNT)]
    done = {message.partition_key() for message in received[:4]}
    for message in received[:4]:
        consumer.acknowledge(message)
    consumer.close()
    client.close()
    return {message.value().item for message in received if message.partition_key() not in done}


def run_commands_of_the_page(old: Address, new: Address, folder: Path) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "pulsarium").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m pulsarium "$@"\n')
    (folder / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for program in (folder / "bin").iterdir():
        program.chmod(0o755)
    shutil.copy(ROOT / "examples" / "python" / "outgrow.py", folder)
    names = {
        "OLD": old.service_url,
        "OLD_ADMIN": old.admin_url,
        "NEW": new.service_url,
        "NEW_ADMIN": new.admin_url,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
    }
    script = "".join(each.text for each in blocks(ROOT / "docs" / "outgrow.md") if each.marker == TESTED)
    run = subprocess.run(
        ["sh", "-ec", script], cwd=folder, env={**os.environ, **names}, check=False, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_new_cluster_delivers_exactly_the_unacknowledged_orders(old: Address, new: Address, tmp_path: Path) -> None:
    left = use_for_a_while(old)
    assert len(left) == COUNT - 4
    run_commands_of_the_page(old, new, tmp_path)

    client = pulsar.Client(new.service_url)
    consumer = client.subscribe("orders", "billing", schema=JsonSchema(Order))
    received = [consumer.receive(WAIT_MS) for _ in left]
    assert {message.value().item for message in received} == left
    assert {(m.partition_key(), m.event_timestamp()) for m in received} == {
        (f"customer {n}", n + 1) for n in (int(item.removeprefix("item ")) for item in left)
    }
    with pytest.raises(pulsar.Timeout):
        consumer.receive(1000)
    client.close()
    assert Admin(new.admin_url).call("GET", "/admin/v2/namespaces/public/default/retention") == {
        "retentionTimeInMinutes": 1440,
        "retentionSizeInMB": 1024,
    }
