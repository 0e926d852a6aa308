from __future__ import annotations

import os

import pytest

from bench.brokers import Broker, free_port
from bench.measure import MeasureError, measure
from bench.programs import BY_NAME, PROGRAMS


def test_a_program_that_fails_says_why() -> None:
    nowhere = Broker(f"pulsar://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}", os.getpid())
    with pytest.raises(MeasureError, match=r"(?s)raw-publish-unbatched on pulsar://.*ConnectionRefusedError"):
        measure(BY_NAME["raw-publish-unbatched"], nowhere, "persistent://public/default/t", 1)


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(PROGRAMS)
