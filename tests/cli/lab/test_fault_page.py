"""The page docs/faults.md is complete."""

from __future__ import annotations

import pytest

from pulsarium.broker.lab.arguments import Which
from pulsarium.broker.lab.faults import ACTIONS
from pulsarium.cli.lab.fault_page import fault_page


@pytest.mark.parametrize("kind", ACTIONS)
def test_every_action_is_there(kind: str) -> None:
    (row,) = (line for line in fault_page().splitlines() if f"| `{kind}` |" in line)
    assert row.startswith(f"| `{ACTIONS[kind].__name__}(")
    assert len(row.split("|")[3]) > 10


def test_every_argument_is_there() -> None:
    for name in ("command", *Which.__annotations__):
        assert any(line.startswith(f"| `{name}` | ") and len(line) > 25 for line in fault_page().splitlines())


@pytest.mark.parametrize(
    "row",
    [
        "| SEND | client | yes | yes | yes | yes |",
        "| FLOW | client |  |  |  |  |",
        "| MESSAGE | broker |  |  | yes |  |",
        "| PING | both |  | yes |  |  |",
        "| LOOKUP | client | yes | yes |  | yes |",
    ],
)
def test_the_page_lists_each_fault(row: str) -> None:
    assert row in fault_page().splitlines()
