"""A real Apache Pulsar standalone with the options of `pulsarium serve`, to measure and test against."""
