"""`pulsarium explore`: its options, exit codes and report.

The program and the commands of docs/explore.md do what the page says.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner, Result

from pulsarium.broker.testing import running
from pulsarium.cli.main import cli
from tests.docs.blocks import ROOT, TESTED, blocks, commands, matches

PULSARIUM = (sys.executable, "-P", "-m", "pulsarium")
Explored = Callable[..., "subprocess.CompletedProcess[str]"]
CLIENT = """
import json, os, sys, trio, logging
from pulsarium import client as pulsar
logging.disable()

async def handled(url):
    got = []
    async with (
        pulsar.connect(url) as connected,
        connected.create_producer("t") as producer,
        connected.subscribe("t", "s", initial_position=pulsar.InitialPosition.Earliest) as consumer,
    ):
        for number in range(3):
            await producer.send(b"%d" % number)
        while len({*got}) < 3:
            message = await consumer.receive()
            got.append(message.data())
            await consumer.acknowledge(message)
    return len(got)
"""
ONCE = (
    CLIENT
    + """
assert trio.run(handled, os.environ["PULSAR_SERVICE_URL"]) == 3, "handled twice"
"""
)
ASKED = (
    CLIENT
    + """
print("a line of no meaning", flush=True)
for line in sys.stdin:
    count = trio.run(handled, json.loads(line)["serviceUrl"])
    print("ok" if count == 3 else f"failed handled {count}", flush=True)
"""
)


@pytest.fixture
def explored(tmp_path: Path) -> Explored:
    """Return a function that runs `pulsarium explore` in a folder of its own."""

    def run(*words: str, code: str = "") -> subprocess.CompletedProcess[str]:
        command = ["--", sys.executable, "-P", "-c", code] if code else []
        return subprocess.run(
            [*PULSARIUM, "explore", *words, *command],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=300,
        )

    return run


def refused(*words: str) -> Result:
    """Run a command line that `pulsarium explore` must refuse, and return the result."""
    return CliRunner().invoke(cli, ["explore", *words], prog_name="pulsarium")


def test_nothing_found_is_exit_code_0(explored: Explored) -> None:
    run = explored("--runs", "4", "--seed", "1", code="print('no client')")
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[:2] == ["seed 1", "4 runs, 1 of 1 place covered"]
    assert run.stdout.endswith("nothing found\n")


def test_a_bug_is_found_reduced_reported_and_run_first_next_time(explored: Explored, tmp_path: Path) -> None:
    words = ("--seed", "5", "--only", "duplicate", "--rate", "duplicate=0.5", "--runs", "40")
    run = explored(*words, code=ONCE)
    assert run.returncode == 1, run.stderr
    assert "least script: 1 decision\n  duplicate SEND 0\n" in run.stdout
    assert "5 of 5 more runs" in run.stdout
    assert '@pytest.mark.pulsar(explore=["duplicate SEND 0"])' in run.stdout
    assert "did=duplicated" in run.stdout
    assert "AssertionError: handled twice" in run.stdout
    assert '"duplicate SEND 0"' in (tmp_path / ".pulsarium" / "explore-failures").read_text()
    again = explored("--seed", "6", "--runs", "1", "--only", "unload", code=ONCE)
    assert again.returncode == 1
    assert "\n0 runs" in again.stdout


def test_a_decision_repeats_a_run_and_a_plain_one_is_shown_as_a_fault(explored: Explored) -> None:
    run = explored("--decide", "receipt-lost SEND 1", code=ONCE)
    assert run.returncode == 1
    assert "pulsarium fault add SEND close --after-work --skip 1" in run.stdout


def test_a_script_comes_from_a_file(explored: Explored, tmp_path: Path) -> None:
    (tmp_path / "found.script").write_text("# twice\nduplicate SEND 0\n")
    assert explored("--script", "found.script", code=ONCE).returncode == 1


@pytest.mark.heavy
def test_one_process_runs_all_runs(explored: Explored) -> None:
    run = explored("--persistent", "--runs", "60", "--seed", "1", "--without", "clock-jump", code=ASKED)
    assert run.returncode == 1, run.stderr
    assert "failed: failed handled 4" in run.stdout
    assert "a line of no meaning" in run.stderr


def test_a_run_that_takes_too_long_has_failed(explored: Explored) -> None:
    run = explored("--decide", "small-dispatch START 0", "--timeout", "0.5", code="import time; time.sleep(600)")
    assert run.returncode == 1
    assert "COMMAND has not ended after 0.5 s" in run.stdout


@pytest.mark.heavy
def test_several_runs_at_a_time_find_the_same(explored: Explored) -> None:
    words = ("--jobs", "3", "--seed", "5", "--only", "duplicate", "--rate", "duplicate=0.5", "--runs", "40")
    run = explored(*words, code=ONCE)
    assert run.returncode == 1
    assert "duplicate SEND 0" in run.stdout


@pytest.mark.heavy
def test_keep_going_explores_to_the_last_run_and_reports_each_distinct_failure_once(explored: Explored) -> None:
    words = ("--seed", "5", "--only", "duplicate", "--rate", "duplicate=0.5", "--runs", "20", "--keep-going")
    run = explored(*words, code=ONCE)
    assert run.returncode == 1, run.stderr
    assert "\n20 runs" in run.stdout
    assert run.stdout.count("least script:") == 1
    assert "\n1 distinct failure\n" in run.stdout
    assert "more runs failed" in run.stdout


def test_keep_going_ends_when_a_run_fails_without_a_choice(explored: Explored) -> None:
    run = explored("--runs", "50", "--keep-going", code="raise SystemExit(3)")
    assert run.returncode == 1, run.stderr
    assert "COMMAND ended with exit code 3" in run.stdout
    assert run.stdout.endswith("\n1 distinct failure\n")


def test_behind_a_proxy_a_bug_is_found_and_the_topics_of_each_run_are_deleted(explored: Explored) -> None:
    with running(set={"allowAutoTopicCreationType": "partitioned", "defaultNumPartitions": "1"}) as broker:
        through = ("--proxy", broker.service_url, "--proxy-admin-url", broker.admin_url, "--delete-topics")
        run = explored(*through, "--decide", "duplicate SEND 0", code=ONCE)
        assert run.returncode == 1, run.stderr
        assert f"explore {' '.join(through)} --decide 'duplicate SEND 0'" in run.stdout
        assert "Left out, because only a broker of Pulsarium can make them: redelivery, takeover, " in run.stdout
        assert "pytest.mark" not in run.stdout
        with urlopen(f"{broker.admin_url}/admin/v2/persistent/public/default/partitioned") as answer:
            assert json.load(answer) == []
        assert broker.call(lambda running: [*running.lab.cluster.topics.loaded]) == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--only", "unlode"], "there is no kind 'unlode'"),
        (["--rate", "unload=often"], "could not convert"),
        (["--decide", "unload SEND"], "is no decision"),
        (["--script", "missing"], "No such file"),
        (["--keep-going", "--decide", "unload SEND 1"], "--keep-going has no effect"),
        (["--data", "here"], "--data has no effect"),
        (["--delete-topics"], "explore: --delete-topics is for a proxy: pass --proxy URL, too"),
        (["--proxy", "pulsar://h", "--delete-topics"], "--delete-topics needs the admin API"),
        (["--proxy", "pulsar://h", "--create", "file"], "explore --proxy runs no broker: leave out --create"),
        (["--proxy", "pulsar://h", "--only", "unload"], "only a broker of Pulsarium can do unload"),
        (["--proxy", "pulsar://h", "--decide", "crash-before SEND 0"], "of Pulsarium can do crash-before"),
        (["--proxy", "pulsar://8.8.8.8"], "may be production"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2(words: list[str], text: str) -> None:
    run = refused(*words, "--", "true")
    assert run.exit_code == 2
    assert text in run.stderr


def test_a_command_that_does_not_exist_is_refused() -> None:
    assert refused("--", "no-such-program").exit_code == 127
    assert refused().exit_code == 2


def test_the_kinds_are_listed(explored: Explored) -> None:
    run = explored("--list")
    assert run.returncode == 0
    assert "receipt-lost (rate 0.05)" in run.stdout


@pytest.mark.parametrize("option", ["--data", "--durability", "--capture", "--ready-file"])
def test_an_option_of_serve_without_an_effect_is_refused_and_not_listed(option: str) -> None:
    result = refused(option, "none", "--", "true")
    assert (result.exit_code, f"explore: {option} has no effect" in result.output) == (2, True)
    assert f"{option} " not in CliRunner().invoke(cli, ["explore", "--help"]).output


PAGE = [each for each in blocks(ROOT / "docs" / "explore.md") if each.marker == TESTED]
(PROGRAM,) = (each.text for each in PAGE if each.language == "python")
(REPORT,) = (each.text for each in PAGE if not each.language)
COMMANDS = [line for each in PAGE if each.language == "sh" for line in commands(each.text)]
FOUND = ("--runs 200", "--decide", "--script", "--only receipt-lost")


def as_the_page_says(command: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the page in a folder that has the page's program."""
    (tmp_path / "orders.py").write_text(PROGRAM)
    (tmp_path / "found.script").write_text("duplicate SEND 0  # as the page explains\n")
    words = [sys.executable if word == "python" else word for word in shlex.split(command)[1:]]
    return subprocess.run(
        [sys.executable, "-P", "-m", "pulsarium", *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        env={**os.environ, "PYTHONSAFEPATH": "1"},
    )


@pytest.mark.parametrize(
    "command", [pytest.param(line, marks=[pytest.mark.heavy] * ("--runs" in line)) for line in COMMANDS]
)
def test_a_command_of_the_page_runs(command: str, tmp_path: Path) -> None:
    run = as_the_page_says(command, tmp_path)
    assert run.returncode == int(any(word in command for word in FOUND)), run.stdout + run.stderr
    if command == COMMANDS[0]:
        printed = run.stdout.replace(sys.executable, "python")
        assert matches(re.sub(r"\d+", "0", REPORT), re.sub(r"\d+", "0", printed)), printed  # numbers of runs vary


@pytest.mark.parametrize("command", [line for line in COMMANDS if "--runs" in line])
def test_the_first_run_of_a_command_of_the_page_makes_no_choice(command: str, tmp_path: Path) -> None:
    run = as_the_page_says(re.sub(r"--runs \d+", "--runs 1", command), tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
