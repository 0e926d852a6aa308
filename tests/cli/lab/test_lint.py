"""`pulsarium lint`, of captures and of a broker of this process."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsarium.capture.lint.checker import ALL_RULES
from pulsarium.cli.main import cli
from tests.broker.wire import Type
from tests.capture.captures import write
from tests.capture.lint.planted import conforming, plant
from tests.capture.lint.talk import Talk
from tests.cli.admin.live import live
from tests.cli.lab.line import LabLine

EVIL = '<script>alert("x")</script>'


def lint(*arguments: object) -> Result:
    line = ["lint", *map(str, arguments)]
    return CliRunner().invoke(cli, line, prog_name="pulsarium", catch_exceptions=False)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    return write(tmp_path / "broken.pulscap", [plant("num-messages-mismatch", Talk(3))])


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    talk = Talk(1)
    conforming(talk)
    return write(tmp_path / "clean.pulscap", [talk])


def test_lint_says_what_is_wrong(broken: Path) -> None:
    said = lint(broken)
    assert said.exit_code == 1
    first, _, count, mend = said.stdout.splitlines()
    assert first.startswith(f"{broken}: client error num-messages-mismatch: num_messages 2, but the entry has 3 (")
    assert first.endswith("(Pulsar-Test 1.2.3; connection 3, frame 4, persistent://public/default/t)")
    assert count.startswith("1 x num-messages-mismatch: num_messages of SEND equals")
    assert mend.startswith("    Set num_messages")
    assert lint(broken, "--exit-zero").exit_code == 0


def test_a_capture_without_a_violation_exits_with_0(clean: Path) -> None:
    said = lint(clean)
    assert (said.exit_code, said.stdout) == (0, "No rule was broken.\n")


def test_a_capture_that_cannot_be_read_on_is_not_judged(broken: Path) -> None:
    """Exit code 1 would mean that a rule was broken."""
    broken.write_bytes(broken.read_bytes() + b"\xff" * 40)
    said = lint(broken)
    assert (said.exit_code, said.stdout) == (2, "")
    assert "cannot read beyond record" in said.stderr


def test_a_broker_that_does_not_answer_is_not_judged() -> None:
    assert lint("--live", "--admin-url", "http://127.0.0.1:1").exit_code == 2


def test_a_side_alone_can_be_linted(tmp_path: Path, broken: Path) -> None:
    write(tmp_path / "both.pulscap", [plant("permits-exceeded", Talk(1)), plant("pong-unasked", Talk(2))])
    both = json.loads(lint(tmp_path, "--format", "json").stdout)
    assert both["counts"] == {"permits-exceeded": 1, "pong-unasked": 1, "num-messages-mismatch": 1}
    broker = json.loads(lint(tmp_path, "--format", "json", "--side", "broker").stdout)
    assert broker["counts"] == {"permits-exceeded": 1}
    assert [each["side"] for each in broker["violations"]] == ["broker"]


def test_texts_of_clients_are_escaped_in_the_html_page(tmp_path: Path) -> None:
    talk = Talk(1)
    talk.greet()
    talk.client("SUBSCRIBE", topic=EVIL, subscription="", subType=1, consumer_id=1, request_id=1)
    file, page = write(tmp_path / "evil.pulscap", [talk]), tmp_path / "page.html"
    assert lint(file, "--format", "html", "--out", page).exit_code == 1
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "subscription-name-empty" in text
    assert "&lt;script&gt;" in text
    assert "<script" not in text
    assert "http" not in text.replace("https://", "http")  # the page loads nothing from the network


def test_findings_are_reported_as_sarif(broken: Path) -> None:
    (run,) = json.loads(lint(broken, "--format", "sarif").stdout)["runs"]
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == list(ALL_RULES)
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("num-messages-mismatch", "error")
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "connection 3/frame 4"


def test_findings_are_reported_as_junit(broken: Path, clean: Path) -> None:
    suite = ET.fromstring(lint(broken, "--format", "junit").stdout)
    assert [each.get("name") for each in suite if len(each)] == ["num-messages-mismatch"]
    clean_suite = ET.fromstring(lint(clean, "--format", "junit").stdout)
    assert (clean_suite.get("tests"), clean_suite.get("failures")) == (str(len(ALL_RULES)), "0")


def test_the_list_of_rules_has_every_rule_in_each_format() -> None:
    assert lint("--rules").stdout.count("\n  Mend: ") == len(ALL_RULES)
    known = json.loads(lint("--rules", "--format", "json").stdout)
    assert [each["rule"] for each in known] == list(ALL_RULES)
    assert lint("--rules", "--format", "html").stdout.count("<article") == len(ALL_RULES)


@pytest.mark.parametrize(
    "arguments", [(), ("--rules", "--live"), ("--start", "--rules"), ("--rules", "--format", "junit")]
)
def test_invalid_lint_options_are_refused(arguments: tuple[str, ...]) -> None:
    assert lint(*arguments).exit_code == 2


def test_files_that_are_no_captures_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.pulscap").write_text("hello")
    assert (lint(tmp_path).exit_code, lint(tmp_path / "absent").exit_code) == (2, 2)
    (tmp_path / "empty").mkdir()
    assert lint(tmp_path / "empty").exit_code == 2


@pytest.fixture
async def line() -> AsyncIterator[LabLine]:
    async with live() as here:
        yield LabLine(here, "lint")


async def test_the_captures_of_a_running_broker_are_judged(line: LabLine) -> None:
    idle = await line.run("--live")
    assert (idle.exit_code, "--start" in idle.stderr) == (2, True)
    assert (await line.run("--live", "--stop")).exit_code == 2, "a broker that checked nothing must not pass"
    assert await line.said("--live", "--start") == "The broker checks all connections that are opened from now on.\n"
    wire = await line.live.bed.connect()
    await wire.send(Type.PONG)
    await wire.alive()
    assert (await line.run("--live", "--start")).exit_code == 0, "--start must not report findings"
    found = await line.run("--live", "--clear")
    assert found.exit_code == 1
    assert "client error pong-unasked: PONG without a PING (wire; connection 1, frame 2)" in found.stdout
    assert await line.said("--live") == "No rule was broken.\n"
    assert await line.said("--live", "--stop") == "No rule was broken.\n"
