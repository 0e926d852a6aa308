"""Run java-cli/, and record what it prints: `PYTHONPATH=. python -P -m tests.foreign.java_cli`.

Recording needs a real broker: PULSARIUM_TEST_SERVE=scripts/reference-pulsar.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .broker_process import Address, BrokerProcess, is_pulsarium
from .java_admin import CONFIG
from .recorded import comparable, parsed, without_chance
from .toolchains import CLI, java_command

COMMANDS = CLI.folder / "commands.txt"
EXPECTED = CLI.folder / "expected.jsonl"
SECONDS = 300

IN_ANY_ORDER = ("list", "subscriptions")
"""Commands that print a set, with a line for each member."""


def commands() -> list[str]:
    """Return the lines of commands.txt. Only a real broker needs the sleeps, because it shows new policies late."""
    lines = [line for line in COMMANDS.read_text().splitlines() if not line.startswith("#")]
    return [line for line in lines if not (is_pulsarium() and line.startswith("sleep "))]


def run(address: Address, folder: Path, script: Sequence[str]) -> list[dict[str, Any]]:
    """Run the commands of the script, and return "command", "code", "stdout" and "stderr" of each."""
    conf = folder / "client.conf"
    conf.write_text(f"webServiceUrl={address.admin_url}\nbrokerServiceUrl={address.service_url}\n")
    done = subprocess.run(
        [*java_command(CLI, "org.apache.pulsar.admin.cli.Main"), str(conf)],
        input="".join(f"{line}\n" for line in script),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def comparable_command(told: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a command, without values that differ from run to run."""
    words = told["command"].split()
    statistics = any(part in words[2] for part in ("stats", "info", "message-id"))
    text = told["stdout"]
    shown = parsed(text)
    if shown is text and words[2] in IN_ANY_ORDER:
        shown = text.splitlines()
    return {**told, "stdout": comparable(shown, statistics), "stderr": without_chance(told["stderr"])}


def main() -> None:
    if is_pulsarium():
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process = BrokerProcess(folder, ["--config", str(CONFIG)])
        try:
            told = run(process.address, folder, commands())
        finally:
            process.stop(40)
    kept = [each for each in told if not each["command"].startswith("sleep ")]
    EXPECTED.write_text("".join(json.dumps(comparable_command(each)) + "\n" for each in kept))


if __name__ == "__main__":
    main()
