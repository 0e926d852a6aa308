"""`pulsarium storage show`."""

from __future__ import annotations

import json
from pathlib import Path

import trio
from click.testing import CliRunner, Result

from pulsarium.broker.config import ServeOptions
from pulsarium.broker.server import open_core
from pulsarium.cli.main import cli
from tests.broker.model.compaction.topics import publish, single


def show(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["storage", "show", str(folder), *arguments], prog_name="pulsarium")


def with_entries(folder: Path) -> Path:
    """Make the data folder of a stopped broker with two entries in one topic, and return the folder."""

    async def play() -> None:
        async with open_core(ServeOptions(data=folder)) as broker:
            publish(broker, single("a", b"1"), single("b", b"2"))

    trio.run(play)
    return folder


def test_the_files_and_ledgers_of_a_stopped_broker(tmp_path: Path) -> None:
    before = sorted(path.name for path in with_entries(tmp_path / "data").iterdir())
    shown = show(tmp_path / "data")
    assert shown.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == before
    applied, files, ledgers = shown.stdout.split("\n\n")
    assert applied.startswith("The database has the log up to record ")
    assert "entries-00000001.log" in files
    assert "sound" in files
    assert ledgers.split()[:5] == ["ledger_id", "entries", "bytes", "moved", "garbage"]


def test_json_has_the_place_of_each_entry(tmp_path: Path) -> None:
    shown = json.loads(show(with_entries(tmp_path / "data"), "--entries", "--json").stdout)
    assert sum(row["last"] - row["first"] + 1 for row in shown["entries"]) == shown["files"][0]["entries"] >= 2
    assert {row["file"] for row in shown["entries"]} == {"entries-00000001.log"}
    assert all(row["needed"] for row in shown["entries"])


def test_a_folder_without_data_is_named(tmp_path: Path) -> None:
    refused = show(tmp_path)
    assert refused.exit_code == 1
    assert refused.stderr == f"pulsarium: {tmp_path} holds no data of a broker; name the folder of serve --data\n"
