"""Faults of the broker that a test talks to, and connections whose beginning no rule has seen."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pulsarium.broker.lab.faults import Faults
from tests.broker.wire import Bed


@pytest.fixture
def faults(bed: Bed) -> Faults:
    """No rule yet."""
    lab = bed.broker.cluster.lab
    assert lab is not None
    return lab.faults


@pytest.fixture(autouse=True)
def nothing_failed(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever happens on the wire, nothing in the broker breaks."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
