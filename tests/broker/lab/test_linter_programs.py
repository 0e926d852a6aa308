"""Programs of the rules about clients: the linter finds the rule that each breaks, and nothing once the program is
mended."""

from __future__ import annotations

import pytest
from trio.testing import wait_all_tasks_blocked

from pulsarium.capture.lint.checker import ALL_RULES
from pulsarium.capture.lint.scalable_rules import SCALABLE_RULES
from pulsarium.proto.commands import Direction
from tests.broker.lab.linter_programs import PROGRAMS
from tests.broker.lab.linter_programs.program import Client
from tests.broker.wire import serving

MOST = 60  # the least number of rules about clients


def test_each_rule_about_clients_has_a_program() -> None:
    """The rules of scalable topics have tests of their own: tests/capture/lint/test_scalable_rules.py."""
    wanted = {name for name, each in ALL_RULES.items() if each.about is not Direction.BROKER}
    wanted -= {each.name for each in SCALABLE_RULES.rules}
    assert PROGRAMS.keys() == wanted
    assert len(wanted) >= MOST


@pytest.mark.parametrize("mended", [False, True], ids=["broken", "mended"])
@pytest.mark.parametrize("rule", PROGRAMS)
async def test_each_program_breaks_its_rule_until_it_is_mended(rule: str, mended: bool, autojump_clock: object) -> None:
    program = PROGRAMS[rule]
    async with serving(program.config()) as bed:
        lab = bed.broker.cluster.lab
        assert lab is not None
        lab.linter.start()
        await program.run(Client(bed), mended)
        await wait_all_tasks_blocked()
        found = [(each.rule, each.side, each.severity) for each in lab.linter.violations()]
    assert found == ([] if mended else [(rule, "client", ALL_RULES[rule].severity.value)])
