"""The brokers that scenarios run against, each started once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.client.key_files import KeyFiles, key_files
from tests.foreign.broker_process import PULSARIUM, Address, BrokerProcess
from tests.foreign.toolchains import REFERENCE, require

ROOT = Path(__file__).resolve().parents[3]
CONFIG = ROOT / "tests" / "transcripts" / "standalone.conf"
PULSAR = (str(ROOT / "scripts" / "reference-pulsar"),)


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KeyFiles]:
    return {kind: key_files(tmp_path_factory.mktemp(kind), kind) for kind in ("rsa", "ec")}


def configuration(*, transactions: bool) -> str:
    """Return what transcripts were recorded with, mostly without transactions.

    Where Pulsar makes the topics for transactions at once for many topics, it at times never delivers the messages of
    one to compaction, or does so late.
    """
    on, off = "transactionCoordinatorEnabled=true", "transactionCoordinatorEnabled=false"
    text = CONFIG.read_text()
    assert on in text
    return text if transactions else text.replace(on, off)


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, bool], Address]]:
    """Yield a function that returns `pulsarium` or `pulsar`, with or without transactions, started at first use."""
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
