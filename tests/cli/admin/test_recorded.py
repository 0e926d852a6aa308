"""Command lines of pulsar-admin 4.0.8, 1,200 of them: `pulsarium admin` sends and prints the same.

For each, `recorded.jsonl` has the arguments, the exit code, the requests with the answers of a played server, and
stdout where the answers were whole. The comparison leaves out orders that a JVM chooses by chance (sets, fields by
reflection), and requests for values that the command does not print.

The recorded session of pulsar-admin on a real broker (`samples.md`), line by line on ours.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import pytest

from pulsarium.broker.config import Config

from .conftest import Played
from .live import live

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "recorded.jsonl").read_text().splitlines()]


def normal(method: str, target: str, body: Any) -> str:
    """Return a request as text, with the query and sets in order."""
    path, _, query = target.removeprefix("/admin/v2/").partition("?")
    if isinstance(body, list) and all(isinstance(item, str) for item in body):
        body = sorted(body)
    return json.dumps([method, path, sorted(parse_qsl(query, keep_blank_values=True)), body], sort_keys=True)


def body_of(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_the_recorded_requests_are_whole() -> None:
    assert len(RECORDED) > 1100
    assert len({tuple(row["args"][:2]) for row in RECORDED}) > 440


@pytest.mark.parametrize("group", dict.fromkeys(row["args"][0] for row in RECORDED))
def test_the_command_lines_of_a_group(group: str, played: Played) -> None:
    for row in RECORDED:
        if row["args"][0] == group:
            played.answers.clear()
            played.sent.clear()
            check(row, played)


def check(row: dict[str, Any], played: Played) -> None:
    for method, target, _, status, text, *headers in row["exchanges"]:
        names = {name.lower(): value for given in headers for name, value in given.items()}
        played.answer(method, target.partition("?")[0], text, status, names)
    result = played.run(*row["args"])
    assert result.exit_code == row["exit"], (row["args"], result.stderr)
    expected = sorted(normal(method, target, body_of(text)) for method, target, text, *_ in row["exchanges"])
    assert sorted(normal(*sent) for sent in played.sent) == expected, row["args"]
    if "stdout" in row:
        assert result.stdout.rstrip("\n") == row["stdout"].rstrip("\n"), row["args"]
    assert bool(result.stderr) == bool(row["exit"]), (row["args"], result.stderr)
    if len(row["args"]) > 1:  # a group alone lists its commands
        assert result.stderr.count("\n") == bool(row["exit"]), (row["args"], result.stderr)


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
