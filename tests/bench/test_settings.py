"""Two brokers are measured with the same settings, which the output names."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from pulsarium.broker.config.file import load
from yardsticks.bench.__main__ import commands
from yardsticks.bench.settings import DURABILITY, OWN_OPTIONS, SETTINGS, write
from yardsticks.bench.settings import told as in_words


def options(**given: object) -> argparse.Namespace:
    return argparse.Namespace(**{"on": None, "against": None} | given)


def test_both_brokers_read_one_file(tmp_path: Path) -> None:
    both = commands(options(against="pulsar"), tmp_path)
    files = {command[command.index("--config") + 1] for command in both.values()}
    assert both.keys() == {"pulsarium", "pulsar"}
    assert files == {str(tmp_path / "broker.conf")}
    lines = (tmp_path / "broker.conf").read_text().splitlines()
    assert all(lines.count(f"{key}={value}") == 1 for key, value in SETTINGS.items())
    assert sum(line.partition("=")[0] in SETTINGS for line in lines) == len(SETTINGS)


def test_a_receipt_promises_the_same_of_both(tmp_path: Path) -> None:
    ours = commands(options(against="pulsar"), tmp_path)["pulsarium"]
    assert ours[-len(OWN_OPTIONS) :] == ["--durability", DURABILITY]
    assert (DURABILITY == "fsync") is (SETTINGS["journalSyncData"] == "true")


def test_another_installation_of_pulsarium_gets_the_same_settings(tmp_path: Path) -> None:
    path = tmp_path / "pulsarium"
    path.touch()
    own, other = commands(options(against=str(path)), tmp_path).values()
    assert other == [str(path), *(word for word in own[own.index("serve") :] if word != "--with-parent")]
    assert "--durability" in other


def test_pulsarium_knows_what_it_is_given(tmp_path: Path) -> None:
    config = load(write(tmp_path)).config
    told = (
        config.brokerEntryMetadataInterceptors,
        config.exposingBrokerEntryMetadataToClientEnabled,
        config.transactionCoordinatorEnabled,
        config.acknowledgmentAtBatchIndexLevelEnabled,
    )
    assert told == ((), False, False, False)


def test_a_broker_alone_has_its_own_defaults(tmp_path: Path) -> None:
    assert "--config" not in commands(options(), tmp_path)["pulsarium"]


@pytest.mark.parametrize("word", ["brokerEntryMetadataInterceptors=", "transactionCoordinatorEnabled=false"])
def test_the_settings_are_told(word: str) -> None:
    assert word in in_words(SETTINGS)
