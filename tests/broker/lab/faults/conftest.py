"""Fault rules of the test's broker, and a check that the broker logs no error."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.faults import Faults
from tests.broker.wire import Bed


@pytest.fixture
def faults(bed: Bed) -> Faults:
    """Return the fault rules of the test's broker. None exists yet."""
    lab = bed.broker.cluster.attached(Lab)
    return lab.faults


@pytest.fixture(autouse=True)
def nothing_failed(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Check that the broker logged no error: no frame on the wire may break the broker."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
