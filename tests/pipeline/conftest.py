"""Fixtures of the pipeline tests, which share one Spark session: a session costs as much as hundreds of jobs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests.foreign.admin import Admin
from tests.foreign.broker_process import Address, BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "PULSARIUM_TEST_SPARK_MASTER"
"""Environment variable with the spark://host:port of a running Spark (`scripts/spark-cluster`) for the tests."""

CLUSTER_CONFIG = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Addresses at which executors on this machine find the driver."""

KEPT = ("--set", "brokerDeleteInactiveTopicsEnabled=false")
"""Options of a broker whose topics stay. On a busy machine a program of Spark may come back to a topic after the minute
that a topic without clients has."""

INDEX = "brokerEntryMetadataInterceptors=org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor"


SPARK_TIMEOUT = 600.0
"""Timeout of a test with Spark, in seconds. The first test waits for the JVM, and queries start Python processes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Yield the Spark session of this process, on two cores or on the cluster that the environment names."""
    from pulsarium.pipeline import session

    warehouse = tmp_path_factory.mktemp("warehouse")
    made = session(
        "tests",
        master=os.environ.get(MASTER, "local[2]"),
        config={
            "spark.sql.warehouse.dir": str(warehouse),
            "spark.local.dir": str(warehouse / "local"),
            "spark.sql.shuffle.partitions": "2",
            **CLUSTER_CONFIG,
            "spark.task.maxFailures": "1",  # tasks are not retried, so that a test sees the first failure
            "spark.driver.memory": "1g",
        },
    )
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def no_view_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """Drop the temporary views of a test, such as those of queries in memory: all tests share the session."""
    from pyspark.sql import SparkSession

    shared = request.getfixturevalue("spark") if "spark" in request.fixturenames else None
    yield
    if isinstance(shared, SparkSession):  # some tests have a parameter of that name
        for each in shared.catalog.listTables():
            if each.isTemporary:
                shared.catalog.dropTempView(each.name)


@pytest.fixture(scope="session")
def broker_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("pipeline-broker"), ["--set", INDEX, *KEPT])
    yield process
    assert process.stop() == 0


@pytest.fixture
def broker(broker_process: BrokerProcess) -> Address:
    """Return the address of a broker that numbers messages (PIP-415)."""
    return broker_process.address


@pytest.fixture
def topic() -> str:
    """Return the name of a topic that no other test uses."""
    return f"persistent://public/default/t-{uuid4().hex[:12]}"


@pytest.fixture
def deduplicated(broker: Address, topic: str) -> str:
    """Return the name of a topic in a namespace with deduplication."""
    namespace = f"public/{topic[-12:]}"
    admin = Admin(broker.admin_url)
    admin.call("PUT", f"/admin/v2/namespaces/{namespace}")
    admin.call("POST", f"/admin/v2/namespaces/{namespace}/deduplication", True)
    return f"persistent://{namespace}/t"


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")
