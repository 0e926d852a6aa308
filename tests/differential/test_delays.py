"""Delivery times of delayed messages from Pulsarium and from the real broker, compared by quantiles."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.foreign.toolchains import REFERENCE, require

from .delays import apart, measure, table
from .run import brokers

MESSAGES = 1_000
SEEDS = (19, 20, 21)
"""Seeds of the runs. A run that differs is followed by the next one, because a busy machine may delay one broker."""


@pytest.mark.heavy
@pytest.mark.foreign
def test_delayed_messages_come_when_those_of_a_real_broker_do(tmp_path: Path) -> None:
    require(REFERENCE)
    differences = []
    with brokers(tmp_path) as pair:
        for seed in SEEDS:
            ours, real = trio.run(measure, pair, MESSAGES, seed)
            if not (found := apart(ours, real)):
                return
            differences += [*table(ours, real), *found]
    raise AssertionError("\n".join(differences))


@pytest.mark.parametrize(
    ("ours", "found"),
    [
        ([float(each) for each in range(-500, 1000)], []),
        ([float(each - 190) for each in range(-500, 1000)], []),
        ([float(each - 300) for each in range(-500, 1000)], ["p1", "p10", "p50"]),
        ([float(each) for each in range(-500, 250)], ["p50", "p90", "p99"]),
    ],
)
def test_a_distribution_that_differs_is_told_by_its_quantiles(ours: list[float], found: list[str]) -> None:
    real = {"alone": [float(each) for each in range(-500, 1000)]}
    assert [line.split()[1] for line in apart({"alone": ours}, real)] == found


def test_one_message_that_is_far_out_makes_no_difference() -> None:
    real = [float(each) for each in range(-500, 1000)]
    assert not apart({"alone": [-900.0, *real[1:-1], 3000.0]}, {"alone": real})
