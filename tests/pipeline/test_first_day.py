"""The first day of a user: errors that begin with their reason, SQL, and the notebook."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from tests.foreign.broker_process import Address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTEBOOK = Path(__file__).parents[2] / "examples" / "spark" / "first_day.ipynb"


@pytest.fixture
def where(broker: Address, topic: str) -> dict[str, str]:
    return {"service.url": broker.service_url, "admin.url": broker.admin_url, "topic": topic}


def test_an_error_is_its_reason_without_a_traceback(spark: SparkSession, where: dict[str, str]) -> None:
    rows = spark.range(1).selectExpr("string(id) AS value")
    with pytest.raises(PySparkException) as raised:
        rows.write.format("pulsar").options(**where, topik="x").mode("append").save()
    assert 'unknown option "topik": did you mean "topic"?' in str(raised.value).splitlines()[0]
    assert "Traceback" not in str(raised.value)
    with pytest.raises(PySparkException) as raised:
        spark.read.format("pulsar").options(**where).load()
    assert f"topic {where['topic']} does not exist" in str(raised.value).splitlines()[0]
    assert "Traceback" not in str(raised.value)


def test_topics_are_views_and_tables_of_sql(spark: SparkSession, where: dict[str, str], checkpoint: str) -> None:
    rows = spark.createDataFrame([("Ada", "an apple"), ("Bob", "a pear")], "__key string, value string")
    rows.write.format("pulsar").options(**where).mode("append").save()
    options = ", ".join(f"'{name}' = '{value}'" for name, value in where.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW orders_view USING pulsar OPTIONS ({options})")
    found = spark.sql("SELECT string(__key) AS name FROM orders_view WHERE value LIKE '%apple'").collect()
    assert [each.name for each in found] == ["Ada"]
    spark.sql(f"CREATE TABLE orders (__key BINARY, value STRING) USING pulsar OPTIONS ({options})")
    try:
        spark.sql(f"INSERT INTO orders WITH ({options}) SELECT CAST('Eve' AS BINARY), 'a plum'")
        found = spark.sql(f"SELECT value FROM orders WITH ({options}) ORDER BY value").collect()
        assert [each.value for each in found] == ["a pear", "a plum", "an apple"]
        stream = spark.readStream.options(**where, startingOffsets="earliest").table("orders").writeStream
        stream = stream.format("memory").queryName("orders_stream").option("checkpointLocation", checkpoint)
        stream.trigger(availableNow=True).start().awaitTermination()
        assert spark.table("orders_stream").count() == 3
    finally:
        spark.sql("DROP TABLE orders")


def test_the_notebook_runs_and_draws_two_plots(
    spark: SparkSession, broker: Address, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    mpl.use("Agg")
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            text = "".join(cell["source"]).replace("pulsar://localhost:6650", broker.service_url)
            text = text.replace("http://localhost:8080", broker.admin_url)
            made = eval(compile(text, str(NOTEBOOK), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
            if inspect.iscoroutine(made):
                asyncio.run(made)
    assert len(plt.get_fignums()) == 2
    plt.close("all")
    rows = [each.numInputRows for each in names["batches"]]
    assert (sum(rows), max(rows)) == (3000, 1000)
    assert names["sums"]["sum(apples)"].sum() == 16500
    assert "Ada" in capsys.readouterr().out
