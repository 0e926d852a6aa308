"""Replacements of docs/from-streamnative.md: a mode for a write, PEM files for key stores."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from tests.foreign.broker_process import Address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "from-streamnative.md"
PASSWORD = "changeit"


def test_spark_refuses_a_write_without_a_mode_and_offers_append(
    spark: SparkSession, broker: Address, topic: str
) -> None:
    rows = spark.range(1).selectExpr("string(id) AS value").write.format("pulsar")
    with pytest.raises(PySparkException) as raised:
        rows.option("service.url", broker.service_url).option("topic", topic).save()
    assert raised.value.getCondition() == "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"
    assert '"Append"' in str(raised.value)


def test_a_table_takes_rows_without_a_mode(spark: SparkSession, broker: Address, topic: str) -> None:
    where = {"service.url": broker.service_url, "topic": topic}
    table = f"t_{topic[-12:]}"
    spark.sql(f"CREATE TABLE {table} (value STRING) USING pulsar OPTIONS ('service.url' = '{broker.service_url}')")
    try:
        spark.range(2).selectExpr("string(id) AS value").writeTo(table).options(**where).append()
    finally:
        spark.sql(f"DROP TABLE {table}")
    assert spark.read.format("pulsar").options(**where).load().count() == 2


def test_the_lines_of_the_page_make_pem_files_of_key_stores(tmp_path: Path) -> None:
    store = ["-storepass", PASSWORD, "-keypass", PASSWORD, "-storetype", "JKS", "-alias", "a", "-noprompt"]
    run(
        [
            "keytool",
            "-genkeypair",
            "-keyalg",
            "RSA",
            "-dname",
            "CN=a",
            "-ext",
            "bc=ca:true",
            "-keystore",
            "keystore.jks",
            *store,
        ],
        tmp_path,
    )
    own = ["-keystore", "keystore.jks", "-storepass", PASSWORD, "-alias", "a"]
    run(["keytool", "-exportcert", *own, "-file", "a.cer"], tmp_path)
    run(["keytool", "-importcert", "-keystore", "truststore.jks", *store, "-file", "a.cer"], tmp_path)
    lines = PAGE.read_text().partition("## Key stores")[2].partition("```bash\n")[2].partition("```")[0].splitlines()
    assert [line.split()[0] for line in lines] == ["keytool", "openssl"] * 2
    for line in lines:
        run(line.split(), tmp_path)
    context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    context.load_cert_chain(tmp_path / "client.pem", tmp_path / "client.pem")
    assert [dict(*each["subject"]) for each in context.get_ca_certs()] == [{"commonName": "a"}]


def run(command: list[str], folder: Path) -> None:
    """Run a command that asks for passwords, without a terminal."""
    answers = f"{PASSWORD}\n" * 3
    done = subprocess.run(
        command, cwd=folder, input=answers, capture_output=True, text=True, check=False, start_new_session=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
