"""Test clients of scalable topics for conformance with Pulsar's specification (PIP-494)."""
