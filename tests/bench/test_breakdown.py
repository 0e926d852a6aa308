"""The parts of a message's CPU time."""

from __future__ import annotations

import cProfile
from pathlib import Path

import pytest

from bench import breakdown


async def test_every_part_of_a_message_is_found(tmp_path: Path) -> None:
    publish, one, consume = await breakdown.run(tmp_path / "data", 4)
    for found in (publish, one, consume):
        assert found.loop == pytest.approx(sum(found.parts.values()))
        assert all(us >= 0 for us in found.parts.values())
    assert {"managed ledger", "checksum", "command handlers"} <= publish.parts.keys()
    assert {"cursor", "dispatch", "subscription and consumer"} <= consume.parts.keys()


def test_time_in_builtins_counts_for_their_caller() -> None:
    profile = cProfile.Profile()
    profile.runcall(lambda: sorted(range(1000)))
    assert breakdown.shares(profile) == {breakdown.OTHER: pytest.approx(1)}


def test_a_table_begins_with_the_dearest() -> None:
    table = breakdown.shown([breakdown.Breakdown("publish", 3.0, {"a": 1.0, "b": 2.0}, 0.5)])
    assert table.index("| b | 2.00 |") < table.index("| a | 1.00 |") < table.index("3.00") < table.index("0.50")
