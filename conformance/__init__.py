"""Test clients for conformance with what Pulsar's documents demand."""
