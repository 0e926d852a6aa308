"""Examples of the README and docs/pipeline.md run unchanged, except for their addresses."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pulsar
import pytest

from tests.docs.blocks import ROOT, blocks
from tests.foreign.admin import Admin
from tests.foreign.broker_process import Address, BrokerProcess
from tests.foreign.toolchains import SPARK_AVRO, require

from .conftest import KEPT

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

EXAMPLES = ROOT / "examples" / "python"
RECIPE = EXAMPLES.parent / "cookbook" / "spark" / "orders.sql"
SHARED_CONF = ("spark.sql.shuffle.partitions",)


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Start a broker that drops duplicates and has none of the README's topics, and yield its address."""
    process = BrokerProcess(tmp_path_factory.mktemp("readme"), KEPT)
    Admin(process.address.admin_url).call("POST", "/admin/v2/namespaces/public/default/deduplication", True)
    yield process.address
    assert process.stop() == 0


@pytest.fixture
def run(spark: SparkSession, fresh: Address, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Yield a function that runs an example in this process, where `session()` returns the session of the tests."""
    before = {key: spark.conf.get(key) for key in SHARED_CONF}

    def run(name: str) -> None:
        text = (EXAMPLES / name).read_text()
        assert "pulsar://localhost:6650" in text
        text = text.replace("pulsar://localhost:6650", fresh.service_url)
        text = text.replace("http://localhost:8080", fresh.admin_url)
        (tmp_path / name).write_text(text.replace('"checkpoint"', repr(str(tmp_path / "checkpoint"))))
        runpy.run_path(str(tmp_path / name))

    yield run
    for key, value in before.items():
        assert value is not None
        spark.conf.set(key, value)


def test_the_spark_examples_of_the_readme_run(
    run: Callable[[str], None], spark: SparkSession, fresh: Address, capsys: pytest.CaptureFixture[str]
) -> None:
    run("spark_write.py")
    run("spark_read.py")
    assert "three apples" in capsys.readouterr().out
    assert [tuple(row) for row in rows_of_the_recipe(spark, fresh)] == [("Ada", 1), ("Bob", 1)]
    run("spark_read_stream.py")
    assert capsys.readouterr().out.count("|    1|") == 2
    run("spark_write_stream.py")
    client = pulsar.Client(fresh.service_url)
    reader = client.create_reader("hello-loud", pulsar.MessageId.earliest)
    values = []
    while reader.has_message_available():
        values.append(reader.read_next(timeout_millis=30_000).data())
    client.close()
    assert sorted(values) == [b"A PEAR", b"THREE APPLES"]


def rows_of_the_recipe(spark: SparkSession, broker: Address) -> list[Row]:
    """Run the statements of docs/cookbook/spark.md, and return the rows of the last one."""
    text = RECIPE.read_text()
    text = text.replace("pulsar://localhost:6650", broker.service_url).replace(
        "http://localhost:8080", broker.admin_url
    )
    create, select = text.rstrip().removesuffix(";").split(";")
    spark.sql(create)
    try:
        return spark.sql(select).collect()
    finally:
        spark.catalog.dropTempView("orders")


def test_the_example_for_programs_of_streamnatives_connector_runs(
    run: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    run("spark_from_connector.py")
    assert "ADA" in capsys.readouterr().out


def test_the_example_for_the_avro_functions_of_spark_runs(
    run: Callable[[str], None], spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    (jar,) = (require(SPARK_AVRO).parent / "lib").glob("spark-avro*.jar")
    spark.sql(f"ADD JAR '{jar}'")
    run("spark_avro.py")
    assert "ADA" in capsys.readouterr().out


@pytest.mark.parametrize("drop", ["VIEW", "TABLE"])
def test_the_sql_of_the_page_runs(drop: str, run: Callable[[str], None], fresh: Address, spark: SparkSession) -> None:
    run("spark_write.py")
    (block,) = (each for each in blocks(ROOT / "docs" / "pipeline.md") if f" {drop} orders" in each.text)
    statements = block.text.replace("pulsar://localhost:6650", fresh.service_url).split(";\n")
    found = [spark.sql(each).collect() for each in statements if each.strip()]
    spark.sql(f"DROP {drop} orders")
    assert len(found[1]) >= 2
    where = {"service.url": fresh.service_url, "topic": "hello-spark"}
    rows = spark.read.format("pulsar").options(**where).load().where("value = 'a plum'").collect()
    assert [row["__key"] for row in rows] == [b"Eve"]
