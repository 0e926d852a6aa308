"""Acknowledgements of one entry by many ACKs, compared with a combination that is computed anew each time."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.cursor import pending_record as module
from pulsarium.broker.model.cursor.pending_record import Acked, Holders, left_by
from pulsarium.broker.model.ledger.position import Position
from tests.broker.model.cursor.pended import part

WHERE = Position(1, 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["add", "remove", "ask"]), st.integers(-1, 5))))
def test_holders_leave_what_no_transaction_acknowledged(steps: list[tuple[int, str, int]]) -> None:
    holders, model = Holders(), dict[int, int]()
    for number, what, index in steps:
        if what == "add":
            acked = part(WHERE, 6, index) if index >= 0 else Acked(WHERE)
            holders.add(number, acked)
            model[number] = (acked.remaining or 0) & model.get(number, -1)
        elif what == "remove":
            holders.remove(number, WHERE)
            model.pop(number, None)
        else:
            left = -1
            for each in model.values():
                left &= each
            assert holders.left_of(WHERE) == (left if model else None)
    assert set(holders.of(WHERE)) == set(model)
    holders.forget(WHERE)
    assert holders.left_of(WHERE) is None


def test_each_acknowledged_message_of_a_batch_costs_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at all earlier acknowledgements each time would cost the square of their number."""
    holders, looked_at = Holders(), list[Acked]()

    def counted(held: Iterable[Acked]) -> int:
        looked_at.extend(held := list(held))
        return left_by(held)

    monkeypatch.setattr(module, "left_by", counted)
    for index in range(100):
        holders.add(index, part(WHERE, 100, index))
        assert holders.left_of(WHERE) == (1 << 100) - (2 << index)
    assert len(looked_at) == 1
