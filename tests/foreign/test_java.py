"""The official Java client: the scenarios of java/, one JVM for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .broker_process import COMMAND, Address, given_address
from .lines import LineProgram
from .scenario import MESSAGES, Combination, matrix, on_each_subscription
from .toolchains import JAVA, require

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

ON_EXCLUSIVE_AND_FAILOVER = ("ack-cumulative",)

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
    "schema-avro",
    "schema-json",
    "schema-key-value",
    "schema-primitive",
    "seek-partitions",
    "several",
    "stats",
    "table-view",
    "too-large",
    "unsubscribe",
    "zero-queue",
)


OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    # They print the whole configuration of each producer and consumer.
    "-Dorg.slf4j.simpleLogger.log.org.apache.pulsar.client.impl.ProducerStatsRecorderImpl=warn",
    "-Dorg.slf4j.simpleLogger.log.org.apache.pulsar.client.impl.ConsumerStatsRecorderImpl=warn",
)


@pytest.fixture(scope="module")
def java(broker: Address, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineProgram]:
    target = require(JAVA).parent
    command = ["java", *OPTIONS, "-cp", f"{target}/classes:{target}/lib/*", "pulsarium.foreign.Main"]
    program = LineProgram(
        [*command, broker.service_url, broker.admin_url], tmp_path_factory.mktemp("java") / "stderr.log"
    )
    yield program
    program.close()


@pytest.mark.parametrize("combination", matrix())
def test_ten_thousand_messages(java: LineProgram, topic: str, combination: Combination) -> None:
    java.run("matrix", topic=topic, messages=MESSAGES, **combination.arguments())


@pytest.mark.parametrize("scenario", ALONE)
def test_scenario(java: LineProgram, topic: str, own_namespace: str, scenario: str) -> None:
    java.run(scenario, topic=topic, namespace=own_namespace)


@pytest.mark.parametrize(("scenario", "subscription"), on_each_subscription(ON_EACH_SUBSCRIPTION))
def test_on_each_subscription(java: LineProgram, topic: str, scenario: str, subscription: str) -> None:
    java.run(scenario, topic=topic, subscription=subscription)


@pytest.mark.parametrize("subscription", ["Exclusive", "Failover"])
@pytest.mark.parametrize("scenario", ON_EXCLUSIVE_AND_FAILOVER)
def test_on_exclusive_and_failover(java: LineProgram, topic: str, scenario: str, subscription: str) -> None:
    java.run(scenario, topic=topic, subscription=subscription)


def test_transactions_are_refused(java: LineProgram, topic: str) -> None:
    """With transactionCoordinatorEnabled=false, which is the default."""
    if given_address() is not None:
        pytest.skip(f"a given broker may have transactions on; start one with {COMMAND}")
    java.run("transactions-refused", topic=topic)


def test_no_scenario_is_left_out(java: LineProgram) -> None:
    known = {*ALONE, *ON_EACH_SUBSCRIPTION, *ON_EXCLUSIVE_AND_FAILOVER, "matrix", "transactions-refused"}
    assert set(java.run("list")["scenarios"]) == known
