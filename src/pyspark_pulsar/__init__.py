"""Spark looks for data sources in packages of such names: why `spark.read.format("pulsar")` needs no registration.

It imports all of them when it looks for any, so this one must not fail where only the broker was installed.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource


class NotInstalled(DataSource):
    """Stands in where the data source cannot be imported: an error that says so, for those who ask for `pulsar`."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        from pulsarium.pipeline.data_source import PulsarDataSource  # raises, and says what to install

        raise AssertionError(f"{PulsarDataSource} can be imported: start Spark anew")

    @classmethod
    def name(cls) -> str:
        return "pulsar"


def _found() -> type[DataSource]:
    try:
        from pulsarium.pipeline.data_source import PulsarDataSource
    except ImportError:
        return NotInstalled
    return PulsarDataSource


DefaultSource = _found()

__all__ = ["DefaultSource", "NotInstalled"]
