"""A script for the official pulsar-admin and pulsar-client 4.0.8, compared with its output on a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .broker_process import COMMAND, BrokerProcess, given_address, is_pulsarium
from .java_admin import CONFIG
from .java_cli import EXPECTED, SECONDS, commands, comparable_command, run
from .recorded import differences
from .toolchains import CLI, require

# The first test waits for the whole script.
pytestmark = [pytest.mark.timeout(SECONDS + 60), pytest.mark.heavy]

DIFFERENT = {
    # A real broker shows the index of the time when a ledger was last opened or closed.
    "pulsar-admin topics get-properties persistent://clit/ns/t1": [
        r".stdout: 'a    b\nindex    3\n' there, 'index    -1\na    b\n' here"
    ],
}
"""Commands whose output differs here, and the differences."""

WANTED = [json.loads(line) for line in EXPECTED.read_text().splitlines()]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """Run the script once, and yield the results. It needs a broker of its own, because it lists everything."""
    require(CLI)
    if given_address() is not None:
        pytest.skip(f"needs a broker of its own: {COMMAND} can start it")
    folder: Path = tmp_path_factory.mktemp("pulsar-admin")
    process = BrokerProcess(folder, ["--config", str(CONFIG)])
    yield [each for each in run(process.address, folder, commands()) if not each["command"].startswith("sleep ")]
    process.stop(40)


def test_the_script_has_sixty_commands_and_all_were_recorded() -> None:
    script = [line for line in commands() if not line.startswith("sleep ")]
    assert [wanted["command"] for wanted in WANTED] == script
    assert len([line for line in script if line.startswith("pulsar-admin ")]) >= 60


@pytest.mark.parametrize(
    "index", range(len(WANTED)), ids=[f"{i:03}-{each['command']}" for i, each in enumerate(WANTED)]
)
def test_pulsar_admin_prints_the_same_as_on_a_real_broker(told: list[dict[str, Any]], index: int) -> None:
    found = list(differences(WANTED[index], comparable_command(told[index])))
    assert found == (DIFFERENT.get(told[index]["command"], []) if is_pulsarium() else []), "\n".join(found)
