"""Tests of the short form of `scripts/soak --scalable`, and of its accounts."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.soak.scalable import Account, soak


@pytest.mark.heavy
@pytest.mark.foreign
@pytest.mark.timeout(420)
@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_splits_merges_unloads_and_kills_lose_nothing_and_keep_the_order(tmp_path: Path, backend: str) -> None:
    outcome = anyio.run(soak, tmp_path, 20.0, 1, 8.0, backend=backend)
    assert outcome.violations == []
    assert outcome.events["kills"]
    assert outcome.events["splits"]


def test_a_message_before_an_earlier_one_of_its_key_is_a_violation() -> None:
    account = Account("stream", is_ordered=True)
    for number in (0, 1, 3, 2):
        account.saw("k", number)
    assert account.violations == ["stream: k has 3 in place of 2", "stream: k has 2 in place of 4"]


def test_a_message_may_come_again() -> None:
    account = Account("stream", is_ordered=True)
    for number in (0, 1, 0, 1, 2):
        account.saw("k", number)
    assert not account.violations
    assert account.again == 2
