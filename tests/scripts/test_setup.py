"""The script `scripts/setup`: what uv is asked for in each environment, and runs that need no change."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSION_FILE = "src/pulsarium/broker/config/version.py"
LOCK = 'version = 1\n\n[[package]]\nname = "uv"\nversion = "1.2.3"\n'

# Stands in for uv: makes environments with an interpreter that does nothing, and writes down what it was asked for.
UV = """#!/usr/bin/env bash
echo "${UV_PROJECT_ENVIRONMENT:+$UV_PROJECT_ENVIRONMENT }$*" >>log
[[ $1 == sync ]] || exit 0
mkdir -p "$UV_PROJECT_ENVIRONMENT"/{bin,lib/python3/site-packages}
ln -sf /usr/bin/true "$UV_PROJECT_ENVIRONMENT/bin/python"
"""
# Stands in for an interpreter, whose pip installs the uv above. Where $NO_PIP is set, only environments have pip.
PYTHON = """#!/usr/bin/env bash
case "$*" in
    "-m pip --version") [[ -z ${NO_PIP:-} ]] ;;
    "-m venv build/uv") mkdir -p build/uv/bin; cp "$0" build/uv/bin/python ;;
    "-m pip install "*) echo "${0#"$PWD"/} ${*: -1}" >>log; mkdir -p build/uv/bin; cp tools/uv build/uv/bin/uv ;;
esac
"""


class Checkout:
    """A checkout with the files that the script needs, and a uv that only records its commands."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("scripts/setup", "scripts/serve", "pyproject.toml", VERSION_FILE):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        (root / "uv.lock").write_text(LOCK)
        self.program("tools/python", PYTHON)
        self.program("tools/uv", UV)

    def program(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def fetch(self, client: str, command: str) -> None:
        """Let a command fetch a client."""
        self.program(f"tests/foreign/{client}/fetch", f"#!/usr/bin/env bash\n{command}\n")

    def run(self, script: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        (self.root / "log").unlink(missing_ok=True)
        settings = {"PATH": f"{self.root}/tools:/usr/bin:/bin", **environment}
        return subprocess.run(
            [self.root / "scripts" / script, *options],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.root,
            env={**{name: value for name, value in os.environ.items() if name != "PYTHON"}, **settings},
        )

    def done(self, *options: str, **environment: str) -> list[str]:
        """Return the requests of a successful run to uv and pip."""
        run = self.run("setup", *options, **environment)
        assert (run.returncode, run.stdout) == (0, ""), run.stderr
        log = self.root / "log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout")


SYNC = "sync --quiet --frozen"
BASE = f".venv {SYNC} --inexact --no-default-groups"
EVERYTHING = f".venv {SYNC} --group dev"


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ((), EVERYTHING),
        (("--base",), BASE),
        (("--test",), f".venv {SYNC} --inexact"),
        (("--docs",), f"{BASE} --group docs"),
        (("--python", "3.13"), f".venv-3.13 {SYNC} --python 3.13"),
    ],
)
def test_each_environment_is_one_request_that_is_not_made_twice(
    checkout: Checkout, options: tuple[str, ...], asked: str
) -> None:
    assert checkout.done(*options) == [asked]
    again = checkout.run("setup", *options)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert not (checkout.root / "log").exists()


def test_a_broker_that_is_started_installs_no_more(checkout: Checkout) -> None:
    assert checkout.run("serve").returncode == 0
    assert (checkout.root / "log").read_text() == f"{BASE}\n"


def test_the_shell_is_told_how_it_gets_the_command(checkout: Checkout) -> None:
    told = checkout.run("setup", "--base").stderr.splitlines()[-1]
    assert ".venv/bin/pulsarium" in told
    assert "source .venv/bin/activate" in told
    assert "pipx install '.[client]'" in told


@pytest.mark.parametrize("less", ["--base", "--test", "--docs"])
def test_an_environment_for_development_serves_as_it_is(checkout: Checkout, less: str) -> None:
    checkout.done()
    assert checkout.done(less) == []


def test_an_environment_for_a_broker_grows_when_development_needs_more(checkout: Checkout) -> None:
    checkout.done("--base")
    assert checkout.done() == [EVERYTHING]


@pytest.mark.parametrize("name", ["pyproject.toml", "uv.lock", VERSION_FILE])
def test_a_change_of_the_project_is_installed(checkout: Checkout, name: str) -> None:
    checkout.done("--base")
    file = checkout.root / name
    file.write_text(file.read_text() + "# changed\n")
    assert checkout.done("--base") == [BASE]


def test_what_another_command_removed_from_an_environment_comes_back(checkout: Checkout) -> None:
    package = checkout.root / ".venv" / "lib" / "python3" / "site-packages" / "click"
    package.mkdir(parents=True)
    checkout.done("--base")
    package.rmdir()
    assert checkout.done("--base") == [BASE]


def test_a_checkout_that_was_moved_gets_a_new_environment(checkout: Checkout) -> None:
    checkout.done("--base")
    old = checkout.root / ".venv" / "old"
    old.touch()
    (checkout.root / ".venv" / "root.stamp").write_text("/elsewhere\n")
    assert checkout.done("--base") == [BASE]
    assert not old.exists()


@pytest.mark.parametrize(("no_pip", "installer"), [("", "tools/python"), ("1", "build/uv/bin/python")])
def test_a_machine_without_uv_gets_the_locked_one_for_this_time(
    checkout: Checkout, no_pip: str, installer: str
) -> None:
    python = checkout.root / "tools" / "python"
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": str(python), "NO_PIP": no_pip}
    assert checkout.done("--base", **environment) == [
        f"{installer} uv==1.2.3",
        f".venv {SYNC} --python {python} --inexact --no-default-groups",
    ]
    assert not (checkout.root / "build" / "uv").exists()


def test_a_machine_without_python_is_told_what_is_needed(checkout: Checkout) -> None:
    run = checkout.run("setup", PATH="/usr/bin:/bin", PYTHON="no-such-python")
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (1, "", 1)
    assert "Python 3.11 or later with its venv module is needed" in run.stderr


def test_a_new_lock_is_written_and_installed(checkout: Checkout) -> None:
    checkout.done()
    assert checkout.done("--lock") == ["lock --no-config --upgrade", EVERYTHING]


FETCHES = {path.parent.name for path in (ROOT / "tests" / "foreign").glob("*/fetch")}


@pytest.fixture
def with_clients(checkout: Checkout) -> Checkout:
    """Return a checkout with all tools, whose clients write their names into the log when they are fetched."""
    for tool in ("java", "javac", "mvn", "go", "node", "npm", "cargo", "cc"):
        checkout.program(f"tools/{tool}", "#!/usr/bin/env bash\necho javac 17\n")
    for name in FETCHES:
        checkout.fetch(name, 'echo "$(basename "$(dirname "$0")")" >>log')
    checkout.done()
    return checkout


def test_every_client_is_fetched(with_clients: Checkout) -> None:
    assert sorted(with_clients.done("--foreign")) == sorted(FETCHES)


def test_a_client_that_cannot_be_fetched_ends_all(with_clients: Checkout) -> None:
    with_clients.fetch("java", "exit 1")
    with_clients.fetch("node", "exec sleep 600")  # run() waits for the end of whatever has its output
    run = with_clients.run("setup", "--foreign")
    assert (run.returncode, "tests/foreign/java/fetch failed" in run.stderr) == (1, True)


@pytest.mark.parametrize("options", [("--python",), ("--python", "three"), ("--base", "--lock"), ("--unknown",)])
def test_an_unknown_option_is_refused(checkout: Checkout, options: tuple[str, ...]) -> None:
    assert checkout.run("setup", *options).returncode == 2
    assert not (checkout.root / ".venv").exists()
