"""Random programs: what ours says, the real broker says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.foreign.toolchains import REFERENCE, require

from .__main__ import found, summary
from .run import brokers, run

SEED = 424
OPERATIONS = 10_000
OFTEN_ENOUGH = 100
MOST_BY_CHANCE = 0.01
"""Of all programs, those that differed once and not when they were replayed: a machine under load may stand still."""


@pytest.mark.heavy
@pytest.mark.foreign
def test_random_programs_are_answered_as_by_a_real_broker(tmp_path: Path) -> None:
    require(REFERENCE)
    with brokers(tmp_path) as (ours, real):
        outcome = run(ours, real, SEED, OPERATIONS, jobs=3, least=OFTEN_ENOUGH)
    tally = outcome.tally
    assert not outcome.divergences, "\n".join(found(outcome))
    assert tally.operations >= OPERATIONS
    assert len(outcome.chance) <= MOST_BY_CHANCE * tally.programs, "\n".join(found(outcome))
    assert tally.least() >= OFTEN_ENOUGH, summary(outcome)
