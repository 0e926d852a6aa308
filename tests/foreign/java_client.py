"""Scenarios of the official Java client, and the program that runs them."""

from __future__ import annotations

from pathlib import Path

from .broker_process import Address
from .lines import LineProgram
from .toolchains import JAVA, java_command

ON_EACH_SUBSCRIPTION = (
    "ack-holes",
    "ack-receipt",
    "nack",
    "reconnect",
    "redeliver",
    "seek-batch",
    "seek-ends",
    "seek-id",
    "seek-inclusive",
    "seek-time",
    "unload",
)


OF_TRANSACTIONS = (
    "transaction-ack",
    "transaction-ack-batch",
    "transaction-ack-cumulative",
    "transaction-commit",
    "transaction-commit-batched",
    "transaction-conflict",
    "transaction-ended",
    "transaction-plain-behind",
    "transaction-timeout",
    "transaction-topics",
    "transaction-unload",
)
"""Scenarios that need a broker with transactions. test_transactions.py runs them."""


ALONE = (
    "access-exclusive",
    "access-fencing",
    "access-waiting",
    "ack-list",
    "ack-timeout",
    "busy",
    "chunks",
    "consumer-leaves",
    "dead-letter",
    "failover",
    "fields",
    "grow",
    "key-batches",
    "keys",
    "large",
    "last-message-id",
    "nack-batch",
    "nack-count",
    "non-persistent",
    "partitions",
    "pattern",
    "pattern-new-topics",
    "pause",
    "producer-again",
    "producer-names",
    "producer-sequence",
    "reader-batched",
    "reader-earliest",
    "reader-latest",
    "reader-message-id",
    "reader-partitions",
    "reader-seek",
    "reader-time",
    "schema-auto-consume",
    "schema-auto-produce",
    "schema-auto-produce-refused",
    "schema-avro",
    "schema-avro-grows",
    "schema-incompatible",
    "schema-incompatible-consumer",
    "schema-json",
    "schema-json-grows",
    "schema-key-value",
    "schema-key-value-records",
    "schema-primitive",
    "schema-protobuf-native",
    "seek-partitions",
    "several",
    "stats",
    "table-view",
    "too-large",
    "unsubscribe",
    "zero-queue",
)


def java_program(broker: Address, folder: Path) -> LineProgram:
    """Return the program of java/, which runs scenarios against `broker` and logs to `folder`."""
    folder.mkdir(exist_ok=True)
    command = java_command(JAVA, "pulsarium.foreign.Main")
    return LineProgram([*command, broker.service_url, broker.admin_url], folder / "stderr.log")
