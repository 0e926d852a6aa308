"""Bulk work on Apache Spark: a data source and sink for Pulsar topics, compaction, the analysis of wire captures.

    spark = session()
    spark.read.format("pulsar").option("service.url", "pulsar://localhost:6650").option("topic", "orders").load()

`pip install "pulsarium[spark]"`, and Java 17 or later.
"""

from pulsarium.proto.errors import needs

with needs("pulsarium.pipeline", "spark"):
    import pyarrow as pa  # noqa: F401  # looked for, so that its lack is said once and in clear
    import pyspark  # noqa: F401

from pulsarium.pipeline.spark import NoJava, register, session

__all__ = ["NoJava", "register", "session"]
