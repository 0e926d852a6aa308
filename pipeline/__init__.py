"""Process Pulsar topics in bulk on Apache Spark: a data source and sink, compaction, the analysis of wire captures.

    spark = session()
    spark.read.format("pulsar").option("service.url", "pulsar://localhost:6650").option("topic", "orders").load()

Install with `pip install "pulsarium[spark]"`. Spark needs Java 17 or later.
"""

from importlib.util import find_spec

from pulsarium.proto.errors import needs

with needs("pulsarium.pipeline", "spark"):
    import pyspark

    if find_spec("pyarrow") is None:  # its absence is reported once and clearly, and its import takes long
        raise ModuleNotFoundError(name="pyarrow")

from pulsarium.pipeline.spark import NoJava, SparkTooOld, register, require_spark, session

require_spark(pyspark.__version__)

__all__ = ["NoJava", "SparkTooOld", "register", "session"]
