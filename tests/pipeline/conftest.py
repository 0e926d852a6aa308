"""One Spark session and one broker for all tests of the pipeline: a session costs as much as hundreds of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests.foreign.broker_process import Address, BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INDEX = "brokerEntryMetadataInterceptors=org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of this process, on two cores."""
    from pulsarium.pipeline import session

    warehouse = tmp_path_factory.mktemp("warehouse")
    made = session(
        "tests",
        master="local[2]",
        config={
            "spark.sql.warehouse.dir": str(warehouse),
            "spark.local.dir": str(warehouse / "local"),
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "1g",
        },
    )
    yield made
    made.stop()


@pytest.fixture(scope="session")
def broker_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    options = ["--set", INDEX, "--set", "brokerDeleteInactiveTopicsEnabled=false"]
    process = BrokerProcess(tmp_path_factory.mktemp("pipeline-broker"), options)
    yield process
    assert process.stop() == 0


@pytest.fixture
def broker(broker_process: BrokerProcess) -> Address:
    """A broker that numbers messages (PIP-415)."""
    return broker_process.address


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return f"persistent://public/default/t-{uuid4().hex[:12]}"


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")
