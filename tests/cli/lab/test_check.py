"""`pulsarium check`, and its reports for other tools."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsarium.capture.check.promises import PROMISES
from pulsarium.capture.file import CaptureRecord
from pulsarium.cli.main import cli
from tests.capture.captures import write
from tests.capture.check.planted import KEPT, PLANTED, UNSEEN, History
from tests.docs.blocks import ROOT, TESTED, blocks, matches


def check(*arguments: object) -> Result:
    line = ["check", *map(str, arguments)]
    return CliRunner().invoke(cli, line, prog_name="pulsarium", catch_exceptions=False)


def history(path: Path, *plants: str) -> Path:
    talks = []
    for number, name in enumerate(plants):
        talk = History(number, topic=f"persistent://public/default/{name}")
        PLANTED[name][0](talk)
        talks.append(talk)
    return write(path, talks)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    return history(tmp_path / "broken.pulscap", "message-lost", "key-order")


def test_a_broken_promise_comes_with_its_frames(broken: Path) -> None:
    said = check(broken)
    lines = said.stdout.splitlines()
    assert said.exit_code == 1
    assert lines[0] == (
        f"{broken}: key-order: 1:0 of key 'k' came first after 1:1 (persistent://public/default/key-order, "
        "subscription 's'): MESSAGE (connection 1, frame 11), then MESSAGE (connection 1, frame 12)"
    )
    assert "BROKEN  message-lost                      kept 4, broken 1" in lines
    assert "ok      dirty-read                        kept 0, broken 0" in lines
    assert check(broken, "--exit-zero").exit_code == 0


def test_the_broken_promise_of_the_docs_is_printed_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    talk = History()
    PLANTED["message-lost"][0](talk)
    write(Path("run.pulscap"), [talk])
    (shown,) = (
        each.text for each in blocks(ROOT / "docs" / "check.md") if (each.marker, each.language) == (TESTED, "")
    )
    assert matches(" ".join(shown.split()), " ".join(check("run.pulscap").stdout.split()))


def test_doubts_are_counted_with_their_reason(tmp_path: Path) -> None:
    talk = History()
    UNSEEN["message-lost"][0](talk)
    path = write(tmp_path / "unseen.pulscap", [talk])
    said = check(path)
    assert said.exit_code == 0
    assert "        not proven 1: the message may have expired, been skipped, or be due later" in said.stdout
    assert check(path, "--nothing-unseen").exit_code == 1


def test_a_legal_history_is_clean(tmp_path: Path) -> None:
    talk = History()
    KEPT[1](talk)
    assert check(write(tmp_path / "legal.pulscap", [talk])).exit_code == 0


def test_histories_are_reported_as_json(broken: Path) -> None:
    said = json.loads(check(broken, "--format", "json").stdout)
    assert list(said["promises"]) == list(PROMISES)
    assert {each["promise"] for each in said["verdicts"]} == {"message-lost", "key-order"}
    assert said["verdicts"][0]["frames"][-1]["frame"] == 12


def test_histories_are_reported_as_sarif(broken: Path) -> None:
    (run,) = json.loads(check(broken, "--format", "sarif").stdout)["runs"]
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == list(PROMISES)
    (result,) = [each for each in run["results"] if each["ruleId"] == "message-lost"]
    (location,) = result["locations"]
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "connection 0/frame 14"
    assert location["physicalLocation"]["artifactLocation"]["uri"] == broken.as_uri()
    assert len(result["relatedLocations"]) == 1


def test_histories_are_reported_as_junit(broken: Path, tmp_path: Path) -> None:
    out = tmp_path / "check.xml"
    assert check(broken, "--format", "junit", "--out", out).exit_code == 1
    suite = ET.parse(out).getroot()
    assert (suite.get("tests"), suite.get("failures")) == (str(len(PROMISES)), "2")
    by_name = {each.get("name"): each for each in suite}
    assert by_name["message-lost"].find("failure") is not None
    assert by_name["producer-order"].find("*") is None
    skipped = by_name["dirty-read"].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "the history has no case"


def test_a_running_broker_is_followed_until_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = History()
    PLANTED["key-order"][0](talk)

    def records_now(lab: object) -> Iterator[tuple[int, CaptureRecord]]:
        yield from enumerate(talk.records, 1)
        raise KeyboardInterrupt

    monkeypatch.setattr("pulsarium.cli.lab.capture.file.records_now", records_now)
    said = check("--live")
    assert said.exit_code == 1
    assert said.stdout.startswith("key-order: 1:0 of key 'k' came first after 1:1")


def test_a_missing_broker_is_not_checked() -> None:
    assert check("--live", "--admin-url", "http://127.0.0.1:1").exit_code == 2


def test_the_promises_are_listed() -> None:
    assert check("--promises").stdout.count("\n  Mend: ") == len(PROMISES)


@pytest.mark.parametrize("arguments", [(), ("--promises", "--live")])
def test_check_needs_one_source(arguments: tuple[str, ...]) -> None:
    assert check(*arguments).exit_code == 2


def test_a_file_that_is_no_capture_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "text.pulscap").write_text("hello")
    assert check(tmp_path).exit_code == 2
