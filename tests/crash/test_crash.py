"""Tests of the short form of scripts/crash, which also notices brokers that confirm what they do not store."""

from __future__ import annotations

import secrets
from itertools import chain
from pathlib import Path

import pytest

from pulsarium.broker.storage.persist import PersistPoint

from .lies import LIES
from .process import Manner
from .run import OCCURRENCES, Failure, Round, point_rounds, random_rounds, run

# httpx does not close the body of a request when the connection ends in the middle of the body
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'httpx:ResourceWarning")


def test_every_persist_point_is_one_of_those_at_which_brokers_are_killed() -> None:
    assert set(OCCURRENCES) == set(PersistPoint)


@pytest.mark.timeout(300)  # a dozen processes start one after the other
async def test_a_few_kills(tmp_path: Path) -> None:
    await kill(tmp_path, rounds=3, points=1)


@pytest.mark.heavy
async def test_many_kills_lose_nothing(tmp_path: Path) -> None:
    await kill(tmp_path, rounds=25, points=2)


async def kill(folder: Path, rounds: int, points: int) -> None:
    seed = secrets.randbelow(1_000_000)  # the text of a Failure names the seed
    killed_at = await run(folder, seed, chain(point_rounds(seed, points), random_rounds(seed, rounds)))
    moments = {point.name: points for point in PersistPoint}
    assert {name: killed_at[name] for name in moments} == moments
    assert sum(killed_at.get(moment, 0) for moment in ("load", "verify", "start")) == rounds


@pytest.mark.timeout(300)  # some lies are noticed when the verification takes too long
@pytest.mark.parametrize(
    "lie", [pytest.param(lie, marks=[pytest.mark.heavy] * (lie != "keep_no_acknowledgements")) for lie in LIES]
)
async def test_a_lie_is_noticed(tmp_path: Path, lie: str) -> None:
    point = "BEGUN" if lie == "confirm_too_early" else None
    lying = Round("lies", "load", Manner(point, occurrence=40, armed=False, lie=lie))
    honest = Round("honest", "load", Manner())
    with pytest.raises(Failure, match=r"seed 1, round [12] "):
        await run(tmp_path, 1, [honest, lying, lying])
