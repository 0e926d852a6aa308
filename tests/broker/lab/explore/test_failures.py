"""The file of failed scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.broker.lab.explore.failures import MOST, Failures
from pulsarium.broker.lab.explore.script import Decision, ScriptError

LOST = (Decision("receipt-lost", "SEND", 3),)
JUMP = (Decision("clock-jump", "FLOW", 0, 65.0), Decision("ack-lost", "ACK", 1))


def test_each_application_has_its_own_scripts_in_one_file(tmp_path: Path) -> None:
    mine, other = (Failures(tmp_path / "new" / "failures", name) for name in ("orders", "invoices"))
    assert mine.scripts() == []
    for failures, script in ((mine, LOST), (other, JUMP), (mine, JUMP), (mine, LOST)):
        failures.add(script)
    assert (mine.scripts(), other.scripts()) == ([LOST, JUMP], [JUMP])


def test_the_oldest_scripts_of_an_application_are_dropped(tmp_path: Path) -> None:
    mine, other = (Failures(tmp_path / "failures", name) for name in ("orders", "invoices"))
    other.add(LOST)
    for at in range(MOST + 2):
        mine.add((Decision("unload", "SEND", at),))
    assert [script[0].at for script in mine.scripts()] == list(range(2, MOST + 2))
    assert other.scripts() == [LOST]


@pytest.mark.parametrize("line", ["{", "[]", '{"of": "orders", "script": ["unload"]}', '{"of": "orders"}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "failures"
    path.write_text(line)
    with pytest.raises(ScriptError, match="line 1, is no failure"):
        Failures(path, "orders").scripts()
