"""Process Pulsar topics in bulk on Apache Spark: a data source and sink, compaction, the analysis of wire captures.

    spark = session()
    spark.read.format("pulsar").option("service.url", "pulsar://localhost:6650").option("topic", "orders").load()

Install with `pip install "pulsarium[spark]"`. Spark needs Java 17 or later.
"""

from pulsarium.proto.errors import needs

with needs("pulsarium.pipeline", "spark"):
    import pyarrow as pa  # noqa: F401  # noqa: F401  # imported here, so that its absence is reported once and clearly
    import pyspark

from pulsarium.pipeline.spark import NoJava, SparkTooOld, register, require_spark, session

require_spark(pyspark.__version__)

__all__ = ["NoJava", "SparkTooOld", "register", "session"]
