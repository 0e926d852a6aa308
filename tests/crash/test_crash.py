"""Tests of the short form of scripts/crash, which also notices brokers that confirm what they do not store.

Tests of the journal, which has to notice every wrong message, acknowledgement and setting.
"""

from __future__ import annotations

import secrets
from itertools import chain
from pathlib import Path

import pytest

from pulsarium.broker.storage.persist import PersistPoint
from pulsarium.client import MessageId
from yardsticks.crash.journal import START, Acknowledged, Messages, Place, Registers, behind
from yardsticks.crash.lies import LIES
from yardsticks.crash.process import Manner
from yardsticks.crash.run import OCCURRENCES, Failure, Round, point_rounds, random_rounds, run

# httpx does not close the body of a request when the connection ends in the middle of the body
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'httpx:ResourceWarning")


def test_every_persist_point_is_one_of_those_at_which_brokers_are_killed() -> None:
    assert set(OCCURRENCES) == set(PersistPoint)


@pytest.mark.timeout(600)  # a dozen processes start one after the other
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


@pytest.mark.timeout(600)  # some lies are noticed when the verification takes too long
@pytest.mark.parametrize(
    "lie", [pytest.param(lie, marks=[pytest.mark.heavy] * (lie != "keep_no_acknowledgements")) for lie in LIES]
)
async def test_a_lie_is_noticed(tmp_path: Path, lie: str) -> None:
    point = "BEGUN" if lie == "confirm_too_early" else None
    lying = Round("lies", "load", Manner(point, occurrence=40, armed=False, lie=lie))
    honest = Round("honest", "load", Manner())
    # A lie of the second lying round is noticed in the last round.
    with pytest.raises(Failure, match=r"seed 1, round [123] "):
        await run(tmp_path, 1, [honest, lying, lying])


A, B, C, D = PLACES = [(1, 0, -1), (1, 1, 0), (1, 1, 1), (2, 0, -1)]


@pytest.fixture
def messages() -> Messages:
    """Return three messages: 0 and 1 have receipts for A and B, and 2 has no receipt."""
    messages = Messages("t")
    for place in (A, B):
        messages.has(messages.next_number(), MessageId(*place[:2], batch_index=place[2]))
    messages.next_number()
    return messages


@pytest.mark.parametrize("rest", [[], [(C, 2)]])
def test_a_message_without_a_receipt_may_be_there(messages: Messages, rest: list[tuple[Place, int]]) -> None:
    messages.check([(A, 0), (B, 1), *rest])
    assert messages.places() == [A, B, *(place for place, _ in rest)]
    assert not messages.unknown()


def test_found_messages_stay_and_lost_ones_stay_lost(messages: Messages) -> None:
    messages.next_number()
    messages.check([(A, 0), (B, 1), (D, 3)])
    with pytest.raises(AssertionError, match="earlier crash"):
        messages.check([(A, 0), (B, 1), (C, 2), (D, 3)])
    with pytest.raises(AssertionError, match="receipt"):
        messages.check([(A, 0), (B, 1)])


def test_a_part_of_a_topic_is_checked_alone(messages: Messages) -> None:
    messages.check([(B, 1)], since=B)
    with pytest.raises(AssertionError, match="receipt"):
        messages.check([(B, 1)], since=START)


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ([(A, 0)], "receipt"),
        ([(A, 0), (C, 1)], "receipt"),
        ([(A, 0), (B, 1), (C, 1)], "more than once"),
        ([(B, 1), (A, 0)], "out of order"),
        ([(A, 0), (A, 0), (B, 1)], "out of order"),
        ([(A, 0), (B, 1), (C, 7)], "never sent"),
    ],
)
def test_messages_that_are_wrong(messages: Messages, found: list[tuple[Place, int]], problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        messages.check(found)


def acknowledged(*done: Place) -> Acknowledged:
    one = Acknowledged("s")
    one.asked.update(done)
    one.confirm(done)
    return one


def test_an_acknowledgement_without_an_answer_may_hold() -> None:
    for delivered in ([B, C, D], [B, D]):
        one = acknowledged(A)
        one.asked = {C}
        one.check(PLACES, delivered)
        assert one.done == set(PLACES) - set(delivered)


@pytest.mark.parametrize(
    ("delivered", "problem"),
    [([A, B, C, D], "again"), ([B, D], "gone"), ([B, C, C, D], "twice"), ([B, C, D, (3, 0, -1)], "not of this topic")],
)
def test_acknowledgements_that_are_wrong(delivered: list[Place], problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        acknowledged(A).check(PLACES, delivered)


def test_a_cumulative_acknowledgement_is_whole() -> None:
    one = Acknowledged("s")
    one.asked_since = behind(A)
    one.confirm_since(behind(A))
    with pytest.raises(AssertionError, match="again"):
        one.check(PLACES, PLACES)
    one.asked_since = behind(C)
    with pytest.raises(AssertionError, match="half"):
        one.check(PLACES, [C, D])
    one.check(PLACES, [D])
    assert one.done == {B, C}


def test_a_seek_without_an_answer_is_done_or_not() -> None:
    for delivered in ([D], [C, D]):
        one = acknowledged(A, B, C)
        one.seeking = C
        one.check(PLACES, delivered)
        one.check(PLACES, delivered)
        with pytest.raises(AssertionError, match="gone"):
            one.check(PLACES, [])
    one = acknowledged(A, B, C)
    one.seeking = C
    with pytest.raises(AssertionError, match=r"neither as before the seek .* nor as after it"):
        one.check(PLACES, [B, C, D])


def test_a_seek_forgets_what_was_acknowledged() -> None:
    one = acknowledged(A, B)
    one.moved(B)
    with pytest.raises(AssertionError, match="gone"):
        one.check(PLACES, [C, D])
    one.check(PLACES, [B, C, D])


def test_settings_have_one_of_the_values_they_were_given() -> None:
    registers = Registers()
    registers.check("a", None)
    registers.setting("a", 1)
    registers.setting("a", 2)
    registers.check("a", 1)
    with pytest.raises(AssertionError, match="a is 2"):
        registers.check("a", 2)
    assert registers.known("a") == 1
    assert registers.known("b") is None
