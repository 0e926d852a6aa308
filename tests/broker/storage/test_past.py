"""Data directories that older versions left at `kill -9` (past/). Today's broker tells the same of each as its own
version."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pulsar
import pytest

import pulsarium.broker
from tests.broker.storage.past.load import call
from tests.broker.storage.past.said import describe, left, load_coordinators
from tests.broker.storage.past_stage import PAST, unpack

NAMES = sorted(path.stem for path in PAST.glob("*.json"))
# The first versions did not show schemas over REST.
SCHEMAS = json.loads((PAST / "format-2.json").read_text())["topics"]["typed"]["schemas"]


def known(expected: Any, found: Any) -> Any:
    """Return `found` without the values that the older version did not tell."""
    if expected is None:
        return None
    if isinstance(expected, dict) and isinstance(found, dict):
        return {name: known(value, found.get(name)) for name, value in expected.items()}
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_of_an_older_version_is_served_as_that_version_did(name: str, tmp_path: Path) -> None:
    expected = json.loads((PAST / f"{name}.json").read_text())
    unpack(name, tmp_path)
    transactions = expected["transactions"] is not None
    for _ in ("migrated", "started again"):
        with pulsarium.broker.running(data=tmp_path, set={"transactionCoordinatorEnabled": transactions}) as broker:
            said = json.loads(json.dumps(describe(broker.service_url, broker.admin_url, transactions=transactions)))
        assert known(expected, said) == expected
        assert said["topics"]["typed"]["schemas"] == SCHEMAS
        assert said["topics"].keys() == expected["topics"].keys()


@pytest.mark.parametrize("name", ["format-1-transactions", "format-2"])
def test_a_transaction_that_an_older_version_left_open_can_be_aborted(name: str, tmp_path: Path) -> None:
    expected = json.loads((PAST / f"{name}.json").read_text())
    unpack(name, tmp_path)
    (opened,) = expected["transactions"]
    most, least = opened.strip("()").split(",")
    with (
        pulsarium.broker.running(data=tmp_path, set={"transactionCoordinatorEnabled": True}) as broker,
        closing(pulsar.Client(broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))) as client,
    ):
        before = expected["topics"]["bought"]["subscriptions"]["billing"]
        assert left(client, "bought", "billing") == before
        anyio.run(load_coordinators, broker.service_url)
        assert call(broker.admin_url, "POST", f"v3/transactions/abortTransaction/{most}/{least}") == ""
        again, *rest = left(client, "bought", "billing")
        assert (again, rest) == (expected["topics"]["bought"]["messages"][1].split()[0], before)
