"""Random programs of operations, run against Pulsarium and a real Pulsar: what both say must be the same."""
