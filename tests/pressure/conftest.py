"""Brokers whose time passes when nothing else happens, as in tests/broker."""

from tests.broker.conftest import bed, pytest_itemcollected, wire

__all__ = ["bed", "pytest_itemcollected", "wire"]
