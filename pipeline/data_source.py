"""The data source `pulsar`."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource


class PulsarDataSource(DataSource):
    """Topics as tables and streams."""

    @classmethod
    def name(cls) -> str:
        return "pulsar"
