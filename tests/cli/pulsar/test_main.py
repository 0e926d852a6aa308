"""Subcommands of `bin/pulsar`, and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.broker.config.version import VERSION
from pulsarium.cli.pulsar.main import main


def run(home: Path, capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    """Return exit status, stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        main(home, arguments)
    return (ended.value.code or 0, *capfd.readouterr())


@pytest.mark.parametrize("name", ["broker", "zookeeper", "proxy", "functions-worker", "nonsense"])
def test_a_subcommand_that_is_not_there_is_refused_in_one_line(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, capfd, name) == (
        2,
        "",
        f"pulsarium: bin/pulsar {name} does not exist; use standalone, tokens, help, version\n",
    )


def test_an_option_that_pulsar_has_not_is_refused_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, capfd, "standalone", "--nonsense") == (
        2,
        "",
        "pulsarium: No such option '--nonsense'. See bin/pulsar standalone --help.\n",
    )


def test_the_version_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, capfd, "version") == (0, f"Current version of pulsarium is: {VERSION}\n", "")


@pytest.mark.parametrize("arguments", [(), ("help",), ("--help",)])
def test_help_names_the_subcommands(
    arguments: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(tmp_path, capfd, *arguments)
    assert (status, err) == (0, "")
    for name in ("standalone", "tokens", "version"):
        assert f"  {name} " in out
