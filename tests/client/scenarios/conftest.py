"""The brokers that scenarios run against, each started once, and what was observed there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.client.key_files import KeyFiles, key_files
from tests.foreign.broker_process import PULSARIUM, Address, BrokerProcess
from tests.foreign.toolchains import REFERENCE, require

from .runner import Observation, observe
from .scenario import SCENARIOS

ROOT = Path(__file__).resolve().parents[3]
CONFIG = ROOT / "tests" / "transcripts" / "standalone.conf"
PULSAR = (str(ROOT / "scripts" / "reference-pulsar"),)

Observe: TypeAlias = Callable[[str, str, str], Observation]


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KeyFiles]:
    return {kind: key_files(tmp_path_factory.mktemp(kind), kind) for kind in ("rsa", "ec")}


def configuration(*, transactions: bool) -> str:
    """What transcripts were recorded with, mostly without transactions: where it makes the topics for them at once for
    many topics, Pulsar at times never delivers the messages of one to compaction, or does so late."""
    on, off = "transactionCoordinatorEnabled=true", "transactionCoordinatorEnabled=false"
    text = CONFIG.read_text()
    assert on in text
    return text if transactions else text.replace(on, off)


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, bool], Address]]:
    """Starts `pulsarium` or `pulsar`, with or without transactions, when it is first asked for."""
    processes: dict[tuple[str, bool], BrokerProcess] = {}

    def started(broker: str, transactions: bool) -> Address:
        if (broker, transactions) not in processes:
            if broker == "pulsar":
                require(REFERENCE)
            command = PULSAR if broker == "pulsar" else PULSARIUM
            folder = tmp_path_factory.mktemp(broker)
            (folder / "broker.conf").write_text(configuration(transactions=transactions))
            process = BrokerProcess(folder, ["--config", str(folder / "broker.conf")], command=command)
            processes[broker, transactions] = process
        return processes[broker, transactions].address

    yield started
    for process in processes.values():
        assert process.stop(40.0) == 0


@pytest.fixture(scope="session")
def observation(
    request: pytest.FixtureRequest, brokers: Callable[[str, bool], Address], keys: dict[str, KeyFiles]
) -> Observe:
    """What a scenario observes at a broker, under a loop. The first that asks runs all that pytest has selected."""
    observations: dict[tuple[str, str, bool], dict[str, Observation]] = {}
    selected = [getattr(item, "callspec").params for item in request.session.items if hasattr(item, "callspec")]  # noqa: B009

    def of(scenario: str, broker: str, loop: str) -> Observation:
        transactions = SCENARIOS[scenario].transactions
        way = broker, loop, transactions
        if way not in observations:
            names = dict.fromkeys(
                each["scenario"] for each in selected if (each.get("broker"), each.get("loop")) == (broker, loop)
            )
            chosen = [SCENARIOS[name] for name in names if SCENARIOS[name].transactions == transactions]
            observations[way] = observe(chosen, brokers(broker, transactions), loop, keys)
        return observations[way][scenario]

    return of
