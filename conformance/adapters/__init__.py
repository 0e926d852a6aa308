"""Adapters of the conformance kit for clients."""
