"""The data source `pulsar`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType
from typing_extensions import override

from pulsarium.pipeline.options import CONNECTION
from pulsarium.pipeline.sink import options as sink
from pulsarium.pipeline.source.options import OPTIONS, SourceOptions, described

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter


class PulsarDataSource(DataSource):
    """Topics of any Pulsar broker as tables and streams.

    spark.read.format("pulsar").option("service.url", "pulsar://host:6650").option("topic", "orders").load()

    Columns are those of the topic's schema (`pulsarium.pipeline.columns`), or `value`; and __key, __topic,
    __messageId, __publishTime, __eventTime, __messageProperties, __index. `.schema(...)` takes some of them. A stream
    keeps a durable subscription, so that the broker holds what was not processed yet.

    Options of reading:

    """

    @classmethod
    def name(cls) -> str:
        return "pulsar"

    def schema(self) -> StructType:
        """By the registry. BadOption, NoSuchTopic, and what brokers refuse."""
        from pulsarium.pipeline.source.topics import columns_of

        return columns_of(SourceOptions.of(self.options)).schema

    def reader(self, schema: StructType) -> DataSourceReader:
        from pulsarium.pipeline.source.readers import PulsarReader

        return PulsarReader(SourceOptions.of(self.options), schema)

    @override
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from pulsarium.pipeline.source.readers import PulsarStreamReader

        return PulsarStreamReader(SourceOptions.of(self.options, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pulsarium.pipeline.sink.writers import PulsarWriter

        return PulsarWriter(self.options, schema, overwrite)

    @override
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from pulsarium.pipeline.sink.writers import PulsarStreamWriter

        return PulsarStreamWriter(self.options, schema, overwrite)


PulsarDataSource.__doc__ = (
    f"{(PulsarDataSource.__doc__ or '').rstrip()}\n\n{described((*CONNECTION, *OPTIONS))}\n"
    f"    Options of writing, beside those of the connection:\n\n{described((*sink.OPTIONS, *sink.PRODUCER_OPTIONS))}"
)
