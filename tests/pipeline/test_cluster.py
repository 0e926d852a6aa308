"""Reads and writes on a Spark cluster of a master and two workers, each with an executor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.foreign.broker_process import Address
from yardsticks.servers.spark_cluster import cluster

from .conftest import CLUSTER_CONFIG
from .source.topics import flat, numbers, options, values

DRIVER = Path(__file__).with_name("cluster_driver.py")
ROWS, TASKS, WORKERS = 20_000, 4, 2


@pytest.mark.heavy
def test_two_executors_write_read_and_copy_each_row_once(
    broker: Address, topic: str, deduplicated: str, checkpoint: str, tmp_path: Path
) -> None:
    config = {
        "spark.cores.max": str(WORKERS),
        "spark.scheduler.minRegisteredResourcesRatio": "1",  # no job begins before both executors are there
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",
        "spark.local.dir": str(tmp_path / "local"),
    }
    given = {
        "config": {**CLUSTER_CONFIG, **config},
        "where": options(broker, topic),
        "target": options(broker, deduplicated),
        "splits": {"minPartitions": str(TASKS)},
        "checkpoint": checkpoint,
        "rows": ROWS,
        "tasks": TASKS,
    }
    with cluster(WORKERS, folder=tmp_path / "cluster") as master:
        program = [sys.executable, "-P", str(DRIVER), json.dumps({**given, "master": master})]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["writers"]) == len(found["readers"]) == WORKERS
    assert sorted(map(int, found["values"])) == list(range(ROWS))
    assert sorted(flat(values(broker, deduplicated))) == sorted(numbers(ROWS))
