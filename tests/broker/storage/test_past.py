"""Data directories that versions from 0.1.0 on left at `kill -9` (past/). Today's broker tells the same of each as its
own version."""

from __future__ import annotations

import json
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pulsar
import pytest

import pulsarium.broker
from tests.broker.storage.past.load import call
from tests.broker.storage.past.said import describe, left, load_coordinators

PAST = Path(__file__).parent / "past"
SETTINGS = {"transactionCoordinatorEnabled": True}


@pytest.fixture(params=sorted(path.stem for path in PAST.glob("*.json")))
def name(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Unpack a directory into `tmp_path`, and return its name."""
    name: str = request.param
    with tarfile.open(PAST / f"{name}.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    return name


def told(name: str) -> dict[str, Any]:
    """Return what the version that left a directory said of it."""
    return dict(json.loads((PAST / f"{name}.json").read_text()))


def test_a_folder_of_an_older_version_is_served_as_that_version_did(name: str, tmp_path: Path) -> None:
    for _ in ("the first start", "the second start"):
        with pulsarium.broker.running(data=tmp_path, set=SETTINGS) as broker:
            said = json.loads(json.dumps(describe(broker.service_url, broker.admin_url)))
        assert said == told(name)


def test_a_transaction_that_an_older_version_left_open_can_be_aborted(name: str, tmp_path: Path) -> None:
    expected = told(name)
    (opened,) = expected["transactions"]
    most, least = opened.strip("()").split(",")
    with (
        pulsarium.broker.running(data=tmp_path, set=SETTINGS) as broker,
        closing(pulsar.Client(broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))) as client,
    ):
        before = expected["topics"]["bought"]["subscriptions"]["billing"]
        assert left(client, "bought", "billing") == before
        anyio.run(load_coordinators, broker.service_url)
        assert call(broker.admin_url, "POST", f"v3/transactions/abortTransaction/{most}/{least}") == ""
        again, *rest = left(client, "bought", "billing")
        assert (again, rest) == (expected["topics"]["bought"]["messages"][1].split()[0], before)
