"""Modules that a process of Spark imports before it does anything. A query waits for several such processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.foreign.broker_process import Address
from tests.pipeline.source.topics import numbers, options, publish

TASK = """
import sys
from pulsarium.pipeline.data_source import PulsarDataSource

source = PulsarDataSource(dict(zip(("service.url", "admin.url", "topic"), sys.argv[1:])))
reader = source.reader(source.schema())
rows = sum(batch.num_rows for split in reader.partitions() for batch in reader.read(split))
print(rows, "pandas" in sys.modules)
"""
HEAVY = ("numpy", "pandas", "pyarrow", "pulsarium.client")


@pytest.mark.parametrize(
    ("module", "needed"),
    [
        ("pyspark_pulsar", set()),  # looks for formats
        ("pulsarium.pipeline.sink.writers", set()),  # plans a write, and commits
        ("pulsarium.pipeline.source.topics", {"pulsarium.client"}),  # looks up the columns
    ],
)
def test_a_process_of_spark_imports_no_more_than_its_part_needs(module: str, needed: set[str]) -> None:
    program = f"import sys, {module}; print(*(each for each in {HEAVY} if each in sys.modules))"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == needed


def test_a_task_that_reads_plain_messages_imports_no_pandas(broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(30))
    done = subprocess.run(
        [sys.executable, "-P", "-c", TASK, *options(broker, topic).values()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["30", "False"], done.stderr
