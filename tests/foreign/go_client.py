"""Scenarios of the official Go client that the conformance kit has not, and the program that runs them."""

from __future__ import annotations

from pathlib import Path

from .broker_process import Address
from .lines import LineProgram
from .toolchains import GO, require

OF_TRANSACTIONS = ("transaction-commit", "transaction-timeout")
"""Scenarios that need a broker with transactions. test_transactions.py runs them."""


def go_program(broker: Address, folder: Path) -> LineProgram:
    """Return the program of go/, which runs scenarios against `broker` and logs to `folder`."""
    folder.mkdir(exist_ok=True)
    return LineProgram([str(require(GO)), broker.service_url, broker.admin_url], folder / "stderr.log")
