"""Scenarios of the official Java client that the conformance kit has not, and the program that runs them."""

from __future__ import annotations

from pathlib import Path

from .broker_process import Address
from .lines import LineProgram
from .toolchains import JAVA, java_command

OF_TRANSACTIONS = ("transaction-ack-cumulative", "transaction-commit-batched", "transaction-timeout")
"""Scenarios that need a broker with transactions. test_transactions.py runs them."""


ALONE = (
    "failover",
    "grow",
    "pause",
    "reader-time",
    "schema-auto-consume",
    "schema-auto-produce",
    "schema-auto-produce-refused",
    "schema-avro-grows",
    "schema-incompatible",
    "schema-incompatible-consumer",
    "schema-json-grows",
    "schema-key-value",
    "schema-key-value-records",
    "schema-primitive",
    "schema-protobuf-native",
)


def java_program(broker: Address, folder: Path) -> LineProgram:
    """Return the program of java/, which runs scenarios against `broker` and logs to `folder`."""
    folder.mkdir(exist_ok=True)
    command = java_command(JAVA, "pulsarium.foreign.Main")
    return LineProgram([*command, broker.service_url, broker.admin_url], folder / "stderr.log")
