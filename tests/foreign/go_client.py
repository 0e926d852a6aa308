"""Helpers for the tests of go client."""

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
"""On a broker that has them: test_transactions.py."""


def go_program(broker: Address, folder: Path) -> LineProgram:
    """The scenarios of go/ against `broker`; its log goes to `folder`."""
    folder.mkdir(exist_ok=True)
    return LineProgram([str(require(GO)), broker.service_url, broker.admin_url], folder / "stderr.log")
