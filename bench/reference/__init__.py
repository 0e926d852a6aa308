"""A real Apache Pulsar standalone, started with `pulsarium serve`'s options, to measure and test against."""
