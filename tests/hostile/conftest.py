"""Fixtures for tests that treat a broker badly."""

from tests.broker.conftest import bed, pytest_itemcollected, wire

__all__ = ["bed", "pytest_itemcollected", "wire"]
