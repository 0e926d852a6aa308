"""`pulsarium state`, against a broker of this process."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner, Result

from pulsarium.broker.lab import Lab
from pulsarium.cli import terminal
from pulsarium.cli.admin import asked
from pulsarium.cli.main import cli
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC
from tests.cli.admin.live import live
from tests.cli.lab.line import LabLine


@pytest.fixture
async def state() -> AsyncIterator[LabLine]:
    async with live() as here:
        yield LabLine(here, "state")


async def test_seed_snapshot_reset_restore(state: LabLine, tmp_path: Path) -> None:
    seed, file = tmp_path / "seed.toml", tmp_path / "s"
    seed.write_text('[[topics]]\nname = "t"\nmessages = ["a"]\n')
    assert await state.said("seed", str(seed)) == "1 topics, 1 messages\n"
    assert await state.said("seed", str(seed)) == "nothing new\n"
    topics = state.live.bed.broker.topics
    await state.said("snapshot", str(file))
    await state.said("reset", "--keep-lab")
    assert topics.names("public/default") == []
    await state.said("restore", str(file))
    assert topics.names("public/default") == [TOPIC]


async def test_state_refuses_what_cannot_be(state: LabLine, tmp_path: Path) -> None:
    for command in ("restore", "seed", "snapshot"):
        result = await state.run(command, str(tmp_path / "none" / "file"))
        assert (result.exit_code, "No such file" in result.stderr) == (2, True)
    wrong = tmp_path / "wrong"
    wrong.write_text("hello")
    assert f"{wrong} is not a snapshot" in (await state.run("restore", str(wrong))).stderr
    assert f"{wrong}: neither TOML nor JSON" in (await state.run("seed", str(wrong))).stderr


async def test_a_reset_names_the_broker_that_it_empties(state: LabLine) -> None:
    said = (await state.run("reset")).stderr
    assert said.startswith(f"broker at {state.live.url}: pid {os.getpid()}, up ")
    assert said.endswith(", data in memory\n")


async def test_the_data_folder_of_the_broker_is_named(state: LabLine, tmp_path: Path) -> None:
    state.live.bed.broker.cluster.directory = tmp_path
    assert (await state.run("reset")).stderr.endswith(f", data in {tmp_path}\n")


@pytest.fixture
async def at_terminal(state: LabLine, monkeypatch: pytest.MonkeyPatch) -> LabLine:
    """Make the broker the one of the default URL, and let a person answer questions."""
    monkeypatch.setattr(asked, "DEFAULT_URL", state.live.url)
    monkeypatch.setattr(terminal, "answers", lambda: True)
    for name in ("PULSARIUM_ADMIN_URL", "PULSAR_ADMIN_URL", "PULSAR_CLIENT_CONF"):
        monkeypatch.delenv(name, raising=False)
    return state


async def invoke(line: str, answer: str = "") -> Result:
    return await trio.to_thread.run_sync(lambda: CliRunner().invoke(cli, line.split(), input=answer))


@pytest.mark.parametrize(
    "line", ["state reset", "state restore none", "clock advance 7d", "clock run-next", "clock auto on"]
)
async def test_a_broker_that_nobody_named_is_changed_only_after_a_yes(at_terminal: LabLine, line: str) -> None:
    here = at_terminal.live.bed.broker
    before = here.clock.now_ms()
    here.clock.call_later(7 * 86_400_000, lambda: None)
    here.topics.create(TopicName.parse("t"))
    refused = await invoke(line, "n\n")
    assert (refused.exit_code, refused.stderr.endswith("name another broker with --admin-url\n")) == (1, True)
    assert here.topics.names("public/default") == [TOPIC]
    assert here.clock.now_ms() < before + 6 * 86_400_000
    assert not here.cluster.attached(Lab).clock.auto_advance


async def test_a_clock_that_runs_as_before_needs_no_yes(at_terminal: LabLine) -> None:
    result = await invoke("clock auto off")
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(("line", "answer"), [("state reset", "y\n"), ("state reset --yes", "")])
async def test_a_yes_changes_the_broker(at_terminal: LabLine, line: str, answer: str) -> None:
    topics = at_terminal.live.bed.broker.topics
    topics.create(TopicName.parse("t"))
    result = await invoke(line, answer)
    assert result.exit_code == 0, result.stderr
    assert topics.names("public/default") == []


async def test_a_broker_that_is_named_is_changed_without_a_question(at_terminal: LabLine) -> None:
    assert (await at_terminal.run("reset")).exit_code == 0
