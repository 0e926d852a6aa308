"""Options and output of `pulsarium matrix`. tests/matrix tests its runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsarium.cli.main import cli
from pulsarium.matrix import runner
from pulsarium.matrix.brokers import Address, Mask
from pulsarium.matrix.cell import Cell, Outcome, Result
from pulsarium.matrix.runner import Report, Run


def line(*arguments: str) -> tuple[int, str, str]:
    """Run a command line, and return the exit code, stdout and stderr."""
    result = CliRunner().invoke(cli, ["matrix", *arguments], prog_name="pulsarium")
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Return a list of the runs that were requested. In each run, the first scenario of a client passes."""
    runs: list[Run] = []

    def run(what: Run, report: Report) -> list[Result]:
        runs.append(what)
        outcomes = {"python": Outcome.PASS, "go": Outcome.FAIL, "rust": Outcome.SKIPPED}
        results = [
            Result(Cell(what.scenarios[0].name, client, "pip", "none"), outcomes[client], f"{client} said so")
            for client in what.clients
        ]
        for result in results:
            report(result)
        return results

    monkeypatch.setattr(runner, "run", run)
    return runs


def test_the_help_of_matrix_teaches() -> None:
    code, text, _ = line("--help")
    assert code == 0
    for example in ("--client python,go", "--mask none,v19", "--broker pulsar://", "matrix.html", "pulsarium[matrix]"):
        assert example in text


def test_the_list_shows_every_scenario() -> None:
    _, text, _ = line("--list")
    assert len(text.splitlines()) >= 25
    assert text.startswith("produce-consume ")


def test_the_chosen_cells_are_run(asked: list[Run], tmp_path: Path) -> None:
    options = ["--client", "python", "--scenario", "seek-*", "--profile", "pip,pulsar-4.2", "--mask", "none,v19"]
    code, text, _ = line(*options, "--jobs", "3", "--out", str(tmp_path))
    (what,) = asked
    assert code == 0
    assert [scenario.name for scenario in what.scenarios] == ["seek-id", "seek-time"]
    assert (what.clients, what.profiles, what.jobs, what.given) == (["python"], ["pip", "pulsar-4.2"], 3, None)
    assert what.masks == [Mask("none"), Mask("v19", 19)]
    assert what.cells == 8
    assert text.splitlines()[-5:-3] == ["1 pass", f"{tmp_path}/matrix.html"]


def test_a_failure_is_told_and_is_the_exit_code(asked: list[Run], tmp_path: Path) -> None:
    code, text, _ = line("--client", "python,go,rust", "--scenario", "reader", "--out", str(tmp_path))
    assert code == 1
    assert "fail reader go pip none: go said so\nskipped rust: rust said so\n1 pass, 1 fail, 1 skipped\n" in text


def test_the_matrix_runs_against_a_running_broker(asked: list[Run], tmp_path: Path) -> None:
    line("--client", "python", "--broker", "pulsar://a:6650,http://a:8080", "--out", str(tmp_path))
    assert asked[0].given == Address(["pulsar://a:6650"], ["http://a:8080"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--client", "perl"], "no client perl; there are python, java, go, rust, websocket, node, ours"),
        (["--profile", "pulsar-9"], "no profile pulsar-9; there are pip, pulsar-5.0, pulsar-4.2"),
        (["--mask", "v23"], "unknown mask v23: use none, or v0 to v22"),
        (["--scenario", "nothing"], "no scenario matches nothing: the scenarios are produce-consume,"),
        (["--broker", "http://a:8080"], "--broker takes pulsar://HOST:PORT,http://HOST:PORT"),
    ],
)
def test_wrong_options_are_refused_with_exit_code_2(options: list[str], said: str) -> None:
    code, text, error = line(*options)
    assert (code, text) == (2, "")
    assert error.startswith(f"pulsarium: {said}")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = f"pulsarium: --out {tmp_path / 'file'}: File exists\n"
    assert line("--client", "python", "--out", str(tmp_path / "file")) == (1, "", said)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    said = 'pulsarium: pulsarium matrix needs jwt; install it with: pip install "pulsarium[matrix]"\n'
    assert line("--client", "python") == (1, "", said)
