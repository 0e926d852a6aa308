"""The recorded session of pulsar-admin on a real broker (`samples.md`), line by line on ours."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from pulsarium.broker.config import Config

from .live import live

WORD = re.compile(r"'([^']*)'|(\S+)")


class Sample(NamedTuple):
    arguments: list[str]
    exit_code: int
    stdout: str
    stderr: str


def samples() -> list[Sample]:
    text = (Path(__file__).parent / "samples.md").read_text()
    found = []
    for section in re.split(r"(?m)^### `pulsar-admin", text)[1:]:
        line, _, rest = section.partition("`")
        code = re.search(r"exit code (\d)", rest)
        assert code is not None, line
        arguments = [quoted or plain for quoted, plain in WORD.findall(line)]
        found.append(Sample(arguments, int(code[1]), block(rest, "stdout"), block(rest, "stderr")))
    return found


def block(text: str, name: str) -> str:
    found = re.search(rf"(?s)\n{name}:\n```\n(.*?)```", text)
    return "" if found is None else found[1].replace("<no newline at the end>", "").strip("\n")


def test_the_recorded_samples_are_whole() -> None:
    assert len(samples()) == 101


async def test_the_recorded_session_of_pulsar_admin_has_the_same_output() -> None:
    async with live(Config(forceDeleteNamespaceAllowed=True, forceDeleteTenantAllowed=True)) as admin:
        for sample in samples():
            result = await admin.run(*sample.arguments)
            assert (sample.arguments, result.exit_code) == (sample.arguments, sample.exit_code), result.stderr
            assert neutral(result.stdout) == neutral(sample.stdout), sample.arguments
            # pulsar-admin prints a refusal twice. For a wrong command line it prints the usage, or a stack trace.
            if "\nReason: " in sample.stderr:
                assert neutral(sample.stderr.rpartition("\nReason: ")[2]) in neutral(result.stderr), sample.arguments
            assert bool(result.stderr) == bool(sample.stderr), sample.arguments
            if len(sample.arguments) > 1:  # a group alone lists its commands
                assert result.stderr.count("\n") == bool(result.stderr), sample.arguments


def neutral(text: str) -> str:
    """Remove the ports and hosts of one run."""
    return re.sub(r"(localhost|127\.0\.0\.1):\d+", "HOST:PORT", text).strip("\n")
