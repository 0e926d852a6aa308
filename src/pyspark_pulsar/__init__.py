"""Spark looks for data sources in packages of such names: why `spark.read.format("pulsar")` needs no registration."""

from pulsarium.pipeline.data_source import PulsarDataSource as DefaultSource

__all__ = ["DefaultSource"]
