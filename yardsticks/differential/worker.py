"""A process of a run, which runs programs one after the other and reports them in JSON lines on standard output.

Usage: python -m yardsticks.differential.worker OURS REAL SEED OPERATIONS LEAST [shrink] [survey]; a broker is
"pulsar://...,http://...". Shrinking can take minutes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import hypothesis
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import Flaky
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.stateful import run_state_machine_as_test

from tests.foreign.broker_process import Address

from .pair import Divergence, Pair
from .rules import Everything
from .sides import Side
from .tally import Tally

PROGRAMS = 20  # programs of one seed
STEPS = 40  # steps of one program
MOST = 3  # at most this multiple of the requested operations, to have enough of each command

# A seed always makes the same programs. Hypothesis would also try constants of this project's code, which changes.
providers._get_local_constants = Constants

SETTINGS = settings(
    max_examples=PROGRAMS,
    stateful_step_count=STEPS,
    deadline=None,
    database=None,
    derandomize=False,
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
)


def go(pair: Pair, seed: int, shrink: bool) -> str:
    """Run the programs of one seed. Return "", or the first difference with its program."""

    class ForThisPair(Everything):
        def __init__(self) -> None:
            super().__init__(pair)

    how = settings(SETTINGS, phases=(*SETTINGS.phases, Phase.shrink)) if shrink else SETTINGS
    try:
        run_state_machine_as_test(hypothesis.seed(seed)(ForThisPair), settings=how)
    except Divergence as divergence:
        return "\n".join([pair.last, *getattr(divergence, "__notes__", ())])
    return ""


def work(
    ours: Address, real: Address, first_seed: int, operations: int, least: int, *, shrink: bool, survey: bool
) -> Iterator[dict[str, object]]:
    """Yield the result of each seed, until `operations` ran, and `least` of each command and type."""
    done = Tally()
    with start_blocking_portal("trio") as portal:
        pair = Pair(portal, Side("ours", ours), Side("real", real), f"d{first_seed}-{int(time.time())}", survey)
        pair.prepare()
        seed = first_seed
        while done.operations < operations or (done.least() < least and done.operations < MOST * operations):
            pair.tally = Tally()
            told: dict[str, object] = {"seed": seed}
            try:
                told["divergence"] = go(pair, seed, shrink)
            except Flaky:
                told["chance"] = pair.last
            done.add(pair.tally)
            yield told | {"tally": pair.tally.as_json(), "survey": pair.surveyed}
            pair.surveyed = []
            seed += 1


if __name__ == "__main__":
    ours, real = map(Address.parse, sys.argv[1:3])
    lines, sys.stdout = sys.stdout, sys.stderr  # hypothesis prints to standard output
    seed, operations, least = map(int, sys.argv[3:6])
    words = {word: word in sys.argv for word in ("shrink", "survey")}
    for line in work(ours, real, seed, operations, least, **words):
        print(json.dumps(line), file=lines, flush=True)
