"""Saves of a cursor with many ranges: clients that wait share them, and get their answers with what is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from pulsarium.broker.model.cursor.save_pace import BYTE_SECONDS
from tests.broker.model.cursor.kept import Kept

ENTRIES = 2000


class Acker:
    """Clients that acknowledge entries of one topic, and wait for the answers."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept
        self.answers: list[tuple[int, Exception | None]] = []

    def ack(self, *indexes: int) -> None:
        """Acknowledge entries, each with an ACK in a turn of its own."""
        for index in indexes:
            cursor = self.kept.cursor
            cursor.ack(self.kept.positions[index])
            cursor.save_now()
            cursor.after_save(partial(self._answered, index))
            self.kept.cluster.turn.finish()

    def _answered(self, index: int, error: Exception | None) -> None:
        self.answers.append((index, error))

    @property
    def answered(self) -> list[int]:
        return [index for index, _ in self.answers]

    async def pause(self) -> None:
        """Wait until the pause after a save is over."""
        await trio.sleep(self.kept.cursor._pace.pause() + 0.001)


@pytest.fixture
async def many(autojump_clock: MockClock, nursery: trio.Nursery) -> AsyncIterator[Acker]:
    """Yield clients of a subscription with so many ranges that its record is large."""
    acker = Acker(Kept(ENTRIES, managedLedgerPersistIndividualAckAsLongArray=False))
    nursery.start_soon(acker.kept.cluster.clock.run)
    acker.kept.ack(*range(1, ENTRIES, 2))
    yield acker
    nursery.cancel_scope.cancel()


async def test_acks_share_the_save_of_a_large_record_and_are_answered_when_it_is_stored(many: Acker) -> None:
    before = many.kept.cursor.saves
    many.ack(0, 2, 4, 6)
    assert (many.answers, many.kept.cursor.saves) == ([], before)
    await many.pause()
    assert (many.answers, many.kept.cursor.saves) == ([(each, None) for each in (0, 2, 4, 6)], before + 1)
    many.kept.crash()
    assert many.kept.acked()[:9] == [*range(8), 9]


async def test_the_pause_lets_a_record_take_a_part_of_the_time(many: Acker) -> None:
    assert many.kept.record is not None
    assert many.kept.cursor._pace.pause() == pytest.approx(many.kept.record.ByteSize() * BYTE_SECONDS)


async def test_the_first_ack_after_the_pause_is_saved_at_once(many: Acker) -> None:
    await many.pause()
    many.ack(0)
    assert many.answered == [0]


async def test_a_small_record_is_saved_with_each_ack() -> None:
    acker = Acker(Kept(20))
    acker.ack(1, 3, 5, 0)
    assert acker.answered == [1, 3, 5, 0]


async def test_a_cursor_that_closes_answers_those_that_wait(many: Acker) -> None:
    many.ack(0)
    many.kept.restart()
    assert many.answered == [0]
    assert 0 in many.kept.acked()


async def test_a_cursor_that_is_deleted_answers_those_that_wait_and_is_not_saved_again(many: Acker) -> None:
    many.ack(0)
    cursor, saves = many.kept.cursor, many.kept.cursor.saves
    cursor.delete()
    many.kept.cluster.turn.finish()
    await many.pause()
    assert (many.answered, cursor.saves) == ([0], saves)


async def test_a_failed_save_answers_all_that_wait_with_the_error(many: Acker) -> None:
    many.ack(0, 2)
    many.kept.store.holding = True
    await many.pause()
    many.kept.cluster.turn.finish()
    many.kept.store.fail()
    assert [(index, error is None) for index, error in many.answers] == [(0, False), (2, False)]
