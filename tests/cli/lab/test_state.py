"""`pulsarium state`, against a broker of this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

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
