"""When delayed messages come: ours and the real broker, by their quantiles."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.foreign.toolchains import REFERENCE, require

from .delays import APART_MS, apart, measure, table
from .run import brokers

MESSAGES = 1_000
SEED = 19


@pytest.mark.heavy
@pytest.mark.foreign
def test_delayed_messages_come_when_those_of_a_real_broker_do(tmp_path: Path) -> None:
    require(REFERENCE)
    with brokers(tmp_path) as pair:
        ours, real = (trio.run(measure, each, MESSAGES, SEED) for each in pair)
    assert not apart(ours, real), "\n".join([*table(ours, real), *apart(ours, real)])


@pytest.mark.parametrize(
    ("ours", "found"),
    [
        ([float(each) for each in range(-500, 1000)], []),
        ([float(each - APART_MS + 1) for each in range(-500, 1000)], []),
        ([float(each) for each in range(-500, 250)], ["p50", "p90", "p99"]),
    ],
)
def test_a_distribution_that_differs_is_told_by_its_quantiles(ours: list[float], found: list[str]) -> None:
    real = {"alone": [float(each) for each in range(-500, 1000)]}
    assert [line.split()[1] for line in apart({"alone": ours}, real)] == found


def test_one_message_that_is_far_out_makes_no_difference() -> None:
    real = [float(each) for each in range(-500, 1000)]
    assert not apart({"alone": [-900.0, *real[1:-1], 3000.0]}, {"alone": real})
