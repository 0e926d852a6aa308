"""The script `scripts/setup`: the lock of each environment, and runs that need no change."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSION_FILE = "src/pulsarium/broker/config/version.py"

# Stands in for each interpreter: makes environments of itself, and writes down what else it was asked for.
PYTHON = """#!/usr/bin/env bash
case "$*" in
    "-c import sys, ensurepip"*) [[ $* == *"(${PYTHON_VERSION:-none})"* || $* == *">= (3, 11)"* ]] ;;
    "-m venv --clear "*) rm -rf "$4"; mkdir -p "$4/bin"; cp "$0" "$4/bin/python" ;;
    *"pip --disable-pip-version-check freeze"*) echo "gone==1" ;;
    *" pip "*) echo "${0%/bin/python} $*" >>log ;;
esac
"""


class Checkout:
    """A checkout with the files that the script needs, and an interpreter that only records its commands."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(ROOT / "locks", root / "locks")
        for name in ("scripts/setup", "pyproject.toml", VERSION_FILE):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        self.python = root / "an-interpreter"
        self.python.write_text(PYTHON)
        self.python.chmod(0o755)

    def setup(self, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        (self.root / "log").unlink(missing_ok=True)
        return subprocess.run(
            [self.root / "scripts" / "setup", *options],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.root,
            env={**os.environ, "PYTHON": str(self.python), **environment},
        )

    def done(self, *options: str, **environment: str) -> list[str]:
        """Return the requests of a successful run to pip."""
        run = self.setup(*options, **environment)
        assert (run.returncode, run.stdout) == (0, ""), run.stderr
        log = self.root / "log"
        said = log.read_text() if log.exists() else ""
        return said.replace(" -P -m pip --disable-pip-version-check", "").splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout")


def installs(environment: str, lock: str) -> list[str]:
    return [
        f"{environment} install --quiet --require-hashes -r locks/{lock}.txt",
        f"{environment} install --quiet --no-deps --no-build-isolation --editable .",
    ]


def test_a_broker_gets_its_own_lock_only(checkout: Checkout) -> None:
    assert checkout.done("--base") == installs(".venv", "base")


def test_a_broker_that_is_started_installs_no_more(checkout: Checkout) -> None:
    serve = checkout.root / "scripts" / "serve"
    shutil.copy(ROOT / "scripts" / "serve", serve)
    run = subprocess.run([serve], check=False, env={**os.environ, "PYTHON": str(checkout.python)}, cwd=checkout.root)
    assert run.returncode == 0
    assert not list((checkout.root / ".venv").glob("dev.stamp"))
    assert (checkout.root / ".venv" / "base.stamp").exists()


def test_the_shell_is_told_how_it_gets_the_command(checkout: Checkout) -> None:
    told = checkout.setup("--base").stderr.splitlines()[-1]
    assert ".venv/bin/pulsarium" in told
    assert "source .venv/bin/activate" in told
    assert "pipx install ." in told


@pytest.mark.parametrize("options", [(), ("--base",), ("--python", "3.13")])
def test_nothing_is_done_twice(checkout: Checkout, options: tuple[str, ...]) -> None:
    assert checkout.done(*options, PYTHON_VERSION="3, 13")
    again = checkout.setup(*options, PYTHON_VERSION="3, 13")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert not (checkout.root / "log").exists()


def test_an_environment_for_development_serves_as_it_is(checkout: Checkout) -> None:
    first, *rest = installs(".venv", "dev")
    assert checkout.done() == [first, ".venv uninstall --quiet --yes gone", *rest]
    assert checkout.done("--base") == []


def test_an_environment_for_a_broker_grows_when_development_needs_more(checkout: Checkout) -> None:
    checkout.done("--base")
    assert installs(".venv", "dev")[0] in checkout.done()


def test_a_new_lock_of_the_broker_takes_nothing_from_development(checkout: Checkout) -> None:
    checkout.done()
    lock = checkout.root / "locks" / "base.txt"
    lock.write_text(lock.read_text() + "# changed\n")
    assert checkout.done("--base") == installs(".venv", "base")
    assert checkout.done() == []


@pytest.mark.parametrize("name", ["pyproject.toml", VERSION_FILE])
def test_a_change_of_the_project_is_installed(checkout: Checkout, name: str) -> None:
    checkout.done("--base")
    file = checkout.root / name
    file.write_text(file.read_text() + "# changed\n")
    assert checkout.done("--base") == installs(".venv", "base")


def test_another_python_has_an_environment_of_its_own(checkout: Checkout) -> None:
    first, *rest = installs(".venv-3.13", "unit")
    assert checkout.done("--python", "3.13", PYTHON_VERSION="3, 13") == [
        first,
        ".venv-3.13 uninstall --quiet --yes gone",
        *rest,
    ]
    assert not (checkout.root / ".venv").exists()


def test_a_python_that_is_not_there_is_refused_with_how_to_get_it(checkout: Checkout) -> None:
    run = checkout.setup("--python", "3.99", PYENV_ROOT=str(checkout.root), PATH="/usr/bin:/bin")
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (1, "", 1)
    assert "no Python 3.99 was found" in run.stderr
    assert "`uv python install 3.99` or `pyenv install 3.99`" in run.stderr


@pytest.mark.parametrize("options", [("--python",), ("--python", "three"), ("--base", "--lock"), ("--unknown",)])
def test_an_unknown_option_is_refused(checkout: Checkout, options: tuple[str, ...]) -> None:
    assert checkout.setup(*options).returncode == 2
    assert not (checkout.root / ".venv").exists()
