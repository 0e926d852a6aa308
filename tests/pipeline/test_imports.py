"""Modules that a process of Spark imports before it does anything. A query waits for several such processes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from pulsarium.pipeline.data_source import PulsarDataSource
from pulsarium.pipeline.source.options import SourceOptions
from pulsarium.pipeline.spark import WORKERS
from tests.foreign.broker_process import Address
from tests.pipeline.source.topics import numbers, options, publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = str(Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip")
TASK = """
import sys
from pulsarium.pipeline.data_source import PulsarDataSource

source = PulsarDataSource(dict(zip(("service.url", "admin.url", "topic"), sys.argv[1:])))
reader = source.reader(source.schema())
rows = sum(batch.num_rows for split in reader.partitions() for batch in reader.read(split))
print(rows, "pandas" in sys.modules)
"""
TASK_OF_KEYS = """
import sys
from pyspark.sql.datasource import In
from pyspark.sql.types import BinaryType, StringType, StructType
from pulsarium.pipeline.data_source import PulsarDataSource

*where, kind = sys.argv[1:]
source = PulsarDataSource(dict(zip(("service.url", "admin.url", "topic"), where)) | {"pushFilters": "true"})
column, keys = {"binary": (BinaryType(), (b"k3", b"k4")), "string": (StringType(), ("k3", "k4"))}[kind]
reader = source.reader(StructType().add("value", BinaryType()).add("__key", column))
[*reader.pushFilters([In(("__key",), keys)])]
rows = sum(batch.num_rows for split in reader.partitions() for batch in reader.read(split))
print(rows, "pandas" in sys.modules)
"""
COMMIT = """
import pickle, sys
from pyspark.sql.types import BinaryType, StructType
from pulsarium.pipeline.data_source import PulsarDataSource
from pulsarium.pipeline.sink.written import WrittenRows

options = {"service.url": "pulsar://localhost:6650", "topic": "t", "pulsar.producer.compressionType": "LZ4"}
writer = PulsarDataSource(options).writer(StructType().add("value", BinaryType()), False)
pickle.loads(pickle.dumps(writer)).commit([WrittenRows(0)])
print(*(each for each in sys.argv[1:] if each in sys.modules))
"""
HEAVY = ("numpy", "pandas", "pyarrow", "pulsarium.client")


@pytest.mark.parametrize(
    ("module", "needed"),
    [
        ("pyspark_pulsar", set()),  # the process looks for formats
        ("pulsarium.pipeline.sink.writers", set()),  # the process plans a write, and commits
        ("pulsarium.pipeline.source.topics", {"pulsarium.client"}),  # the process looks up the columns
    ],
)
def test_a_process_of_spark_imports_no_more_than_its_part_needs(module: str, needed: set[str]) -> None:
    program = f"import sys, {module}; print(*(each for each in {HEAVY} if each in sys.modules))"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == needed


def test_the_processes_that_plan_and_commit_a_write_import_no_client() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", COMMIT, *HEAVY], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("\n", "")


def test_a_task_that_reads_plain_messages_imports_no_pandas(broker: Address, topic: str) -> None:
    publish(broker, topic, numbers(30))
    done = subprocess.run(
        [sys.executable, "-P", "-c", TASK, *options(broker, topic).values()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["30", "False"], done.stderr


@pytest.mark.parametrize("kind", ["binary", "string"])
def test_a_task_that_reads_selected_keys_imports_no_pandas(broker: Address, topic: str, kind: str) -> None:
    publish(broker, topic, numbers(30), keys=10)
    done = subprocess.run(
        [sys.executable, "-P", "-c", TASK_OF_KEYS, *options(broker, topic).values(), kind],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["6", "False"], done.stderr


def _started(*path: str, program: str) -> list[str]:
    """Return the words that a process of Python prints, whose path begins with `path`."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert not done.stderr
    return done.stdout.split()


def test_a_process_of_spark_imports_the_installed_pyspark_and_not_the_archive() -> None:
    program = "import pyspark, sys; print(pyspark.__file__, sys.path[-1])"
    assert _started(ARCHIVE, str(WORKERS), program=program) == [pyspark.__file__, ARCHIVE]


def test_the_archive_of_another_pyspark_stays_first(tmp_path: Path) -> None:
    archive = str(tmp_path / "python" / "lib" / "pyspark.zip")
    assert _started(archive, str(WORKERS), program="import sys; print(sys.path[0])") == [archive]


def test_a_sitecustomize_of_the_environment_is_still_imported(tmp_path: Path) -> None:
    Path(tmp_path, "sitecustomize.py").write_text("found = True\n", encoding="utf-8")
    program = "import sitecustomize; print(sitecustomize.found)"
    assert _started(str(WORKERS), str(tmp_path), program=program) == ["True"]


def test_the_workers_of_a_local_session_import_the_installed_pyspark(spark: SparkSession) -> None:
    (found,) = spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("pyspark").__file__).collect()
    assert (found == pyspark.__file__) == str(spark.conf.get("spark.master")).startswith("local")
    assert str(WORKERS) not in os.environ.get("PYTHONPATH", "")


def test_the_process_that_plans_a_read_looks_up_no_columns_again(
    broker: Address, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(broker, topic, numbers(30))
    source = PulsarDataSource(options(broker, topic))
    schema = source.schema()
    monkeypatch.delattr(SourceOptions, "columns")
    reader = pickle.loads(pickle.dumps(source)).reader(schema)
    (rows,) = [sum(batch.num_rows for batch in reader.read(split)) for split in reader.partitions()]
    assert rows == 30
