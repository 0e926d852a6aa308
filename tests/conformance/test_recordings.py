"""`pulsarium conformance broker`: recordings of a real Pulsar against a broker that runs."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from pulsarium.broker.testing import running
from pulsarium.cli.main import cli
from tests.client.refusing import refusing_port


def compare(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["conformance", "broker", *arguments])


def compared(profile: str, folder: Path, *scenarios: str) -> Result:
    with running(profile=profile) as broker:
        url = ("--url", broker.service_url, "--admin-url", broker.admin_url)
        return compare(*url, "--report", str(folder), *scenarios)


def test_a_broker_that_answers_as_pulsar_did_passes(tmp_path: Path) -> None:
    result = compared("pulsar-4.2", tmp_path, "001")
    assert result.exit_code == 0, result.output
    assert "equal     24 of   24  001-connect-versions" in result.output
    assert result.output.endswith("1 of 1 scenarios equal, 24 of 24 answers (100.0%)\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["001-connect-versions.jsonl", "broker.xml"]


def test_the_differences_of_an_earlier_run_do_not_stay(tmp_path: Path) -> None:
    (tmp_path / "001-connect-versions.diff").write_text("of an earlier run")
    assert compared("pulsar-4.2", tmp_path, "001").exit_code == 0
    assert not (tmp_path / "001-connect-versions.diff").exists()


def test_an_answer_that_differs_is_shown_beside_that_of_pulsar(tmp_path: Path) -> None:
    result = compared("pip", tmp_path, "connect-versions")
    assert result.exit_code == 1
    assert "DIFFER" in result.output
    differences = (tmp_path / "001-connect-versions.diff").read_text().splitlines()
    assert any(line.strip().startswith("-{") and '"protocol_version": 21' in line for line in differences)
    assert any(line.strip().startswith("+{") and '"protocol_version": 22' in line for line in differences)
    failure = ET.parse(tmp_path / "broker.xml").find("testcase/failure")
    assert failure is not None
    assert "answers differ: see 001-connect-versions.diff" in failure.attrib["message"]


def test_the_settings_of_the_recorded_broker_are_printed() -> None:
    result = compare("--show-conf", "--conf", "auth")
    assert result.exit_code == 0
    assert "authenticationEnabled=true" in result.output.splitlines()


def test_scenarios_of_scalable_topics_have_recordings_too() -> None:
    result = compare("--release", "5.0.0-M1-scalable", "--list", "lookup")
    assert [line.split()[0] for line in result.output.splitlines()] == ["002-lookup-names", "003-lookup-sessions"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("001", "pass both --url and --admin-url"),
        ("nonsense", "no recorded scenario fits 'nonsense' (--list shows those of --conf lab)"),
        ("--conf slow", "recordings of 4.2.4 have lab, stock, auth"),
        ("--url kafka://x:1 --admin-url http://x:1", "not of the form pulsar://HOST:PORT"),
        ("--url pulsar://x:1 --admin-url x:1", "not of the form http://HOST:PORT"),
        ("--url pulsar://x:1 --admin-url http://127.0.0.1:80x", "no broker's REST API answers"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(line: str, says: str) -> None:
    result = compare(*line.split())
    assert result.exit_code != 0
    assert says in result.output


def test_a_broker_that_does_not_run_is_named_at_once() -> None:
    with refusing_port() as port:
        result = compare("--url", f"pulsar://127.0.0.1:{port}", "--admin-url", f"http://127.0.0.1:{port}")
    assert result.exit_code == 1
    assert f"no broker's REST API answers at http://127.0.0.1:{port}" in result.output
    assert "Start the broker first" in result.output
