"""Scenarios of the official Go client, and the program that runs them."""

from __future__ import annotations

from pathlib import Path

from .broker_process import Address
from .lines import LineProgram
from .toolchains import GO, require

ON_EACH_SUBSCRIPTION = ("ack-response", "nack", "seek-id", "seek-time")


ALONE = (
    "access-modes",
    "chunks",
    "consumer-exclusive",
    "failover",
    "last-message-ids",
    "nack-count",
    "pattern",
    "producer-name",
    "reader",
    "reader-message-id",
    "schema-json",
    "table-view",
    "unsubscribe",
    "zero-queue",
)


OF_TRANSACTIONS = (
    "transaction-ack",
    "transaction-commit",
    "transaction-conflict",
    "transaction-ended",
    "transaction-timeout",
    "transaction-topics",
)
"""Scenarios that need a broker with transactions. test_transactions.py runs them."""


def go_program(broker: Address, folder: Path) -> LineProgram:
    """Return the program of go/, which runs scenarios against `broker` and logs to `folder`."""
    folder.mkdir(exist_ok=True)
    return LineProgram([str(require(GO)), broker.service_url, broker.admin_url], folder / "stderr.log")
