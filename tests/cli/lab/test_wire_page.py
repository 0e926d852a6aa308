"""The commands of docs/wire.md do what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner

from pulsarium.broker.testing import running
from pulsarium.cli.main import cli
from pulsarium.client import connect

PAGE = Path(__file__).parents[3] / "docs" / "wire.md"
COMMANDS = [
    line for block in re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.M | re.S) for line in block.splitlines()
]


async def work(url: str) -> None:
    async with connect(url) as client, client.create_producer("orders") as producer:
        await producer.send(b"one")


def test_every_command_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with running() as broker:
        capture = broker.captures.start(tmp_path / "run.pulscap")
        trio.run(work, broker.service_url)
        capture.stop()
    for command in COMMANDS:
        with running() as broker:
            line = shlex.split(command.partition(" > ")[0].replace("pulsar://localhost:6650", broker.service_url))
            done = CliRunner().invoke(cli, line[1:], prog_name="pulsarium", catch_exceptions=False)
        assert done.exit_code == 0, (command, done.output)
    assert {each.name for each in tmp_path.iterdir()} >= {"run.pcapng", "imported.pulscap", "again.pulscap", "lint.xml"}
