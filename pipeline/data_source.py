"""The data source `pulsar`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType
from typing_extensions import override

from pulsarium.pipeline import connector
from pulsarium.pipeline.errors import reason_first
from pulsarium.pipeline.options import CONNECTION, READING, WRITING, Options
from pulsarium.pipeline.sink import options as sink
from pulsarium.pipeline.source.options import OPTIONS, SourceOptions, described

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter

    from pulsarium.pipeline.columns.columns import Columns


_READ = {each.name for each in OPTIONS}
_WRITTEN = {each.name for each in sink.OPTIONS}
ONLY_READ = {connector.READER, *(_READ - _WRITTEN)}
"""Options of reading that mean nothing to a write. A name that ends with a dot is a prefix."""
ONLY_WRITTEN = {connector.PRODUCER, *(_WRITTEN - _READ)}


class PulsarDataSource(DataSource):
    """Topics of any Pulsar broker as tables and streams.

    spark.read.format("pulsar").option("service.url", "pulsar://host:6650").option("topic", "orders").load()

    The columns are those of the topic's schema (`pulsarium.pipeline.columns`), or `value`. Behind them stand __key,
    __topic, __messageId, __publishTime, __eventTime, __messageProperties and __index. `.schema(...)` selects some of
    the columns. A stream keeps a durable subscription, so that the broker retains the messages that are not processed
    yet.

    Options of reading:
    """

    _columns: Columns | None = None
    """Columns that `schema` has looked up. Spark copies this object from there to the process that plans."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        connector.warn(options)  # Spark copies this object, so that a query warns once

    @classmethod
    def name(cls) -> str:
        return "pulsar"

    @reason_first()
    def schema(self) -> StructType:
        """Return the columns of the topics, by their schemas in the registry.

        Raise `BadOption` for wrong options, `NoSuchTopic` when no topic exists, and the broker's own errors.
        """
        self._columns = self._reading().columns()
        return self._columns.schema

    @reason_first()
    def reader(self, schema: StructType) -> DataSourceReader:
        from pulsarium.pipeline.source.readers import FilteringReader, PulsarReader

        options = self._reading()
        return (FilteringReader if options.push_filters else PulsarReader)(options, schema, self._columns)

    @override
    @reason_first()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from pulsarium.pipeline.source.readers import PulsarStreamReader

        return PulsarStreamReader(self._reading(streaming=True), schema, self._columns)

    @reason_first()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pulsarium.pipeline.sink.writers import PulsarWriter

        return PulsarWriter(self._writing(), schema, overwrite)

    @override
    @reason_first()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from pulsarium.pipeline.sink.writers import PulsarStreamWriter

        return PulsarStreamWriter(self._writing(), schema, overwrite)

    def _reading(self, *, streaming: bool = False) -> SourceOptions:
        Options(self.options).refuse_elsewhere(ONLY_WRITTEN, WRITING)
        return SourceOptions.of(self.options, streaming=streaming)

    def _writing(self) -> Mapping[str, str]:
        Options(self.options).refuse_elsewhere(ONLY_READ, READING)
        return self.options


PulsarDataSource.__doc__ = (
    f"{(PulsarDataSource.__doc__ or '').rstrip()}\n\n{described((*CONNECTION, *OPTIONS))}\n"
    f"    Options of writing, beside those of the connection:\n\n{described((*sink.OPTIONS, *sink.PRODUCER_OPTIONS))}"
)
