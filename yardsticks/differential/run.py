"""Run several workers at once against one pair of brokers, and collect their differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.foreign.broker_process import PULSAR, PULSARIUM, Address, BrokerProcess
from tests.workers import workers
from yardsticks.servers.reference.conf import CONFIG, changed

from .tally import Tally

SEEDS_APART = 1_000_000
"""Distance between the first seeds of two workers."""

SETTINGS = {
    "transactionCoordinatorEnabled": "false",
    "systemTopicEnabled": "false",
    "topicLevelPoliciesEnabled": "false",
    "activeConsumerFailoverDelayTimeMillis": "0",
}
"""Settings that differ from the recorded broker's, so that nothing happens late, or in system topics."""

LIKE_PULSAR = ("--profile", "pulsar-4.2", "--no-separate-publish-times")
"""Options of a broker of ours. It sends all receipts before the PONG that `Link.settle` waits for."""


@dataclass
class Outcome:
    """The result of a run.

    Each of `divergences` ends with its program. `chance` has the divergences that a replay of the program did not show.
    """

    tally: Tally = field(default_factory=Tally)
    divergences: list[str] = field(default_factory=list)
    chance: list[str] = field(default_factory=list)


def configuration() -> str:
    """Return a broker.conf for both brokers."""
    return changed(CONFIG.read_text(), SETTINGS)


@contextmanager
def brokers(
    folder: Path, real: Address | None = None, ours: Sequence[str] = PULSARIUM, other: Sequence[str] = PULSAR
) -> Iterator[tuple[Address, Address]]:
    """Start our broker and the other broker, unless a `real` broker runs already with the settings of `configuration`.

    The commands `ours` and `other` take the options of `pulsarium serve`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "broker.conf"
    config.write_text(configuration())
    given = ["--config", str(config)]
    started = [BrokerProcess(folder / "ours", [*LIKE_PULSAR, *given], command=ours)]
    try:
        if real is None:
            options = given if other == PULSAR else [*LIKE_PULSAR, *given]
            started.append(BrokerProcess(folder / "other", options, command=other))
            real = started[1].address
        yield started[0].address, real
    finally:
        for process in started:
            if process.running:
                process.stop(40.0)


def run(
    ours: Address,
    real: Address,
    seed: int,
    operations: int,
    jobs: int,
    least: int = 0,
    shrink: bool = False,
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> Outcome:
    """Run at least `operations`, and `least` of each command, with `jobs` workers. `tell` gets interim outcomes."""
    share = -(-operations // jobs), -(-least // jobs)
    urls = [f"{each.service_url},{each.admin_url}" for each in (ours, real)]
    programs = [
        [
            "yardsticks.differential.worker",
            *urls,
            *map(str, (seed + number * SEEDS_APART, *share)),
            *["shrink"] * shrink,
        ]
        for number in range(jobs)
    ]
    outcome = Outcome()
    with workers(programs) as heard:
        left = jobs
        while left:
            _, line, status = heard.get()
            if line is None:
                left -= 1
                if status > 0:  # the worker failed, and was not stopped by this process
                    outcome.divergences.append(f"seed ?: a worker ended with {status}")
                    tell(outcome)
                continue
            outcome.tally.add(Tally.of_json(line["tally"]))
            for kind, found in (("divergence", outcome.divergences), ("chance", outcome.chance)):
                if line.get(kind):
                    found.append(f"seed {line['seed']}: {line[kind]}")
            tell(outcome)
    return outcome
