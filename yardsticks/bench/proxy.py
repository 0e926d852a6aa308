"""Run scripts/bench proxy: the rate of messages through `pulsarium proxy`, as a share of the rate without it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Final

from yardsticks.bench.brokers import Broker, launched, pulsarium_command, running
from yardsticks.bench.measure import Subject, alternate
from yardsticks.bench.programs import PROGRAMS
from yardsticks.servers import ROOT

SHARES: Final = {
    "raw-publish-unbatched": 60,
    "publish-unbatched": 60,
    "publish-batched": 90,
    "consume-shared-unbatched": 60,
    "consume-shared-batched": 90,
}
"""The programs, and the least percentage of the direct rate that the proxy shall reach."""
DIRECT, THROUGH = "direct", "through the proxy"
ABOUT = """\
Measures messages of 1 KB through `pulsarium proxy`, without rules and observers, and without the proxy, in turn.
Figures are medians. Broker, proxy and client are processes on one machine, so the proxy has a core of its own only if
there are three.

  scripts/bench proxy                                         in front of Pulsarium
  scripts/bench proxy --on pulsar                             in front of a real broker (scripts/reference-pulsar)
  scripts/bench proxy --on pulsar://HOST:PORT,http://HOST:PORT,PID    in front of a running broker
"""


@contextmanager
def broker_of(asked: str | None) -> Iterator[Broker]:
    """Start the broker that the option names, or return the running one."""
    if asked not in (None, "pulsar"):
        yield running(asked)
        return
    command = pulsarium_command() if asked is None else [str(ROOT / "scripts" / "reference-pulsar")]
    with launched(command) as launch:
        yield launch.broker


def main(given: Sequence[str]) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser("bench proxy", description=ABOUT, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--on", metavar="BROKER", help='"pulsar", or a running broker: URL,URL,PID')
    parser.add_argument("--repetitions", type=int, default=3, metavar="N", help="counted runs (default: 3)")
    parser.add_argument("--quick", action="store_true", help="few messages, one run, no warm-up")
    options = parser.parse_args(given)
    repetitions, warm_ups = (1, 0) if options.quick else (options.repetitions, 1)
    print("| program | direct, a second | through the proxy | share | target |\n|---|---:|---:|---:|---:|")
    with broker_of(options.on) as broker:
        proxy = [*pulsarium_command()[:-2], "proxy", broker.service_url, "--admin-url", broker.admin_url]
        with launched(proxy) as launch:
            subjects = {DIRECT: Subject(broker), THROUGH: Subject(launch.broker)}
            for program in [each for each in PROGRAMS if each.name in SHARES]:
                count = program.quick if options.quick else program.count
                runs = alternate(program, subjects, count, warm_ups, repetitions)
                rates = {name: median(run.rate for run in each) for name, each in runs.items()}
                share = 100 * rates[THROUGH] / rates[DIRECT]
                figures = f"{rates[DIRECT]:,.0f} | {rates[THROUGH]:,.0f} | {share:.0f} % | {SHARES[program.name]} %"
                print(f"| {program.title} | {figures} |", flush=True)
    return 0
