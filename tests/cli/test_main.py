"""The command group: help that teaches, and imports that can wait.

Commands of an install without extras name the missing extra. `pulsarium` where Python lacks what only POSIX systems
have, as on Windows: it serves, or refuses in one line.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pulsarium.broker.config.version import VERSION
from pulsarium.capture.file import CaptureWriter, Header
from pulsarium.cli.garbage import GARBAGE_THRESHOLDS
from pulsarium.cli.main import cli
from pulsarium.proto.installing import remedy
from tests.workers import unmeasured
from yardsticks.servers import ending

LATE = {"trio", "google.protobuf", "h11", "sqlite3", "importlib.metadata", "difflib"}
# A broker that has had no HTTP request, compresses and stores nothing, and asks for no role needs none of these.
NOT_OF_A_START = (
    *("anyio", "asyncio", "cryptography", "fastavro", "httpx", "hypothesis", "jwt", "numpy", "passlib", "pytest"),
    *("cramjam", "difflib", "h11", "http", "lz4", "re2", "sqlite3", "wsproto"),
    *("pulsarium.client", "pulsarium.conformance", "pulsarium.pipeline", "pulsarium.capture"),
    *(f"pulsarium.broker.{name}" for name in ("admin", "console", "http", "testing", "web", "websocket")),
    *(f"pulsarium.broker.lab.{name}" for name in ("capture", "explore", "faults", "rest", "state", "toxiproxy", "why")),
)
START = """
import sys
import pulsarium.__main__, pulsarium.cli.main, pulsarium.cli.serve, pulsarium.cli.logs, pulsarium.cli.run, trio
from pulsarium.broker.config import Config, ServeOptions
from pulsarium.broker.server import open_broker

async def start():
    config = Config(brokerServicePort=0, webServicePort=0)
    async with open_broker(ServeOptions(config=config), web_when_asked=True):
        print(*sys.modules)

trio.run(start)
"""
WATCHED = """
import gc, sys

class Watch:
    def find_spec(name, path=None, target=None):
        if name in ("pulsarium.cli.main", "pulsarium.cli.pulsar.standalone"):
            print(gc.get_threshold())

sys.meta_path.insert(0, Watch)
"""


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(cli, arguments, prog_name="pulsarium")
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_the_help_of_pulsarium_teaches(option: str) -> None:
    text = shown(option)
    assert "pulsar://localhost:6650" in text
    assert "\n    pulsarium serve\n" in text
    assert "pulsarium serve --port 0 --http-port 0 --ready-file broker.json" in text
    assert re.search(r"\n  serve +Run a broker", text)


def test_help_of_serve_teaches() -> None:
    text = shown("serve", "--help")
    for example in ("--data ./data", "--config broker.conf --set allowAutoTopicCreation=false", "--profile pulsar-4.2"):
        assert f"pulsarium serve {example}" in text
    headings = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Network:", "Storage:", "Behavior:", "TLS:", "Output:", "Process:", "Other:"]
    for default in ("127.0.0.1", "6650", "8080", "os", "22, or that of the profile's release"):
        assert f"[default: {default}]" in " ".join(text.split())


def test_the_version_is_printed() -> None:
    assert shown("--version") == f"pulsarium {VERSION}\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("server", "No such command 'server'; did you mean serve? (see pulsarium --help)"),
        ("admin topisc list", "No such command 'topisc'; did you mean topics? (see pulsarium admin --help)"),
        ("client produse", "No such command 'produse'; did you mean produce? (see pulsarium client --help)"),
        (
            "admin topics list public/default --admin-url x",
            "No such option '--admin-url'; put it directly after `pulsarium admin` (see pulsarium admin topics list",
        ),
        ("client produce t --url x", "No such option '--url'; put it directly after `pulsarium client` (see"),
        (
            "admin functions list",
            "'functions': Pulsarium has no functions, connectors or packages; use Apache Pulsar for them (see",
        ),
        ("admin topics delete public/default/[ --regex", "TOPIC: 'persistent://public/default/[' is no regular"),
        ("client consume [ --regex -s s", "TOPIC: '[' is no regular expression: "),
        ("frobnicate", "No such command 'frobnicate' (see pulsarium --help)"),
        ("--port 1", "No such option '--port' (see pulsarium --help)"),
        ("serve --prot 1", "No such option '--prot'. (Did you mean one of: '--host', '--port', '--profile'?)"),
        ("serve --port x", "Invalid value for '--port': 'x' is not a valid integer"),
        ("serve extra", "Got unexpected extra argument (extra) (see pulsarium serve --help)"),
        ("fault ad", "No such command 'ad'; did you mean add? (see pulsarium fault --help)"),
        ("fault add SEND", "Missing argument 'ACTION'. Choose from: answer, drop"),
        ("clock advance", "pass a DURATION such as 7d, or --to TIME (see pulsarium clock advance --help)"),
        ("client consume t", "Missing option '-s' / '--subscription-name' (see pulsarium client consume --help)"),
        ("capture show --frm x", "No such option '--frm'"),
        ("conformance client --jobs x", "Invalid value for '--jobs'"),
    ],
)
def test_a_wrong_command_line_is_one_line_that_leads_to_the_help(line: str, said: str) -> None:
    result = CliRunner().invoke(cli, line.split(), prog_name="pulsarium")
    assert (result.exit_code, result.stdout) == (1 if line.startswith("admin") else 2, "")
    assert result.stderr.startswith(f"pulsarium: {said}")
    assert result.stderr.endswith(" --help)\n")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("how", [KeyboardInterrupt, click.Abort])
def test_ctrl_c_ends_a_command_with_130_and_without_a_word(
    how: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise how

    monkeypatch.setattr("pulsarium.cli.lab.broker.LabOf.call", interrupted)
    result = CliRunner().invoke(cli, ["why", "t", "s"], prog_name="pulsarium")
    assert (result.exit_code, result.output) == (130, "")


def test_start_up_imports_no_module_that_it_does_not_need() -> None:
    code = "import sys, pulsarium.cli.main, pulsarium.cli.serve; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True, env=unmeasured()
    )
    assert set(run.stdout.split()) & LATE == set()


def test_a_start_imports_no_module_that_a_broker_without_http_requests_does_not_need() -> None:
    run = subprocess.run(
        [sys.executable, "-P", "-c", START], check=True, capture_output=True, text=True, env=unmeasured()
    )
    imported = run.stdout.split()
    assert "pulsarium.broker.session.session" in imported
    assert [name for name in imported if f"{name}.".startswith(tuple(f"{late}." for late in NOT_OF_A_START))] == []


@pytest.mark.parametrize(
    "program",
    [
        "from pulsarium.__main__ import main; sys.argv[1:] = ['--version']; main()",
        "from pulsarium.cli.pulsar.main import main; main(None, ['standalone', '--help'])",
    ],
)
def test_garbage_is_collected_seldom_before_the_imports_of_a_command(program: str) -> None:
    """Imports make a hundred thousand lasting objects, which collections would look at again and again."""
    run = subprocess.run(
        [sys.executable, "-P", "-c", WATCHED + program], check=True, capture_output=True, text=True, env=unmeasured()
    )
    assert run.stdout.splitlines()[0] == str(GARBAGE_THRESHOLDS)


TOKENS = (
    "--set authenticationEnabled=true --set tokenSecretKey=x --set "
    "authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
)
RUN = "from pulsarium.__main__ import main; main()"


def without(module: str, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process in which a module is not installed."""
    program = f"import sys; sys.modules[{module!r}] = None\n{code}"
    command = [sys.executable, "-P", "-c", program, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("anyio", "pulsarium.client", "client"),
        ("typing_extensions", "pulsarium.client", "client"),
        ("pyspark", "pulsarium.pipeline", "spark"),
    ],
)
def test_a_package_without_its_extra_says_what_to_install(module: str, package: str, extra: str) -> None:
    said = f"{package} needs {module}; {remedy(extra)}"
    code = f"try: import {package}\nexcept ImportError as error: print(error)"
    assert without(module, code).stdout == f"{said}\n"


@pytest.mark.parametrize(
    ("line", "module", "what", "extra"),
    [
        ("client produce t -m a", "anyio", "pulsarium.client", "client"),
        ("client consume t -s s", "anyio", "pulsarium.client", "client"),
        ("client read t", "anyio", "pulsarium.client", "client"),
        ("conformance client --client python", "cryptography", "pulsarium conformance", "conformance"),
        ("abandon checkpoint", "pyspark", "pulsarium.pipeline", "spark"),
        pytest.param(
            *("capture export run.pulscap --parquet out", "pyarrow", "pulsarium.pipeline", "spark"),
            marks=pytest.mark.skipif(not find_spec("pyspark"), reason="the error names pyspark first"),
        ),
        ("compact t --data . --engine spark", "pyspark", "compaction engine spark: pulsarium.pipeline", "spark"),
        ("serve --compaction-engine spark", "pyspark", "compaction engine spark: pulsarium.pipeline", "spark"),
        ("exec --compaction-engine spark true", "pyspark", "compaction engine spark: pulsarium.pipeline", "spark"),
        (f"serve {TOKENS}", "jwt", "--set: authenticationProviders: AuthenticationProviderToken", "auth"),
    ],
)
def test_a_command_without_its_extra_is_one_line(
    line: str, module: str, what: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "run.pulscap").open("wb") as capture:
        CaptureWriter(capture.write, Header(wall_ns=0))
    (tmp_path / "pulsarium.db").touch()
    run = without(module, RUN, *line.split())
    said = f"pulsarium: {what} needs {module}; {remedy(extra)}\n"
    assert (run.stdout, run.stderr) == ("", said)
    assert run.returncode in (1, 2)


# Other packages are imported first, with the POSIX modules. The test is about our own imports.
PROGRAM = """
import os, sys
import anyio, asyncio, multiprocessing, sqlite3, ssl, trio
for module in ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"):
    sys.modules[module] = None
for name in ("O_CLOEXEC", "O_NONBLOCK", "fork", "getpgrp", "getuid", "killpg", "setsid", "statvfs", "sysconf", "uname"):
    delattr(os, name)
from pulsarium.cli.main import main
main()
"""
COMMAND = (sys.executable, "-P", "-c", PROGRAM)
SERVE = ("serve", "--port", "0", "--http-port", "0", "--log-level", "warning")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], check=False, capture_output=True, text=True)


@pytest.fixture
def service_url() -> Iterator[str]:
    """Yield the service URL of a broker without POSIX."""
    with ending(subprocess.Popen([*COMMAND, *SERVE], stdout=subprocess.PIPE, text=True)) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[2]
        process.terminate()
    assert process.returncode == 0


def test_a_broker_serves_a_client(service_url: str) -> None:
    sent = run("client", "--url", service_url, "produce", "-m", "hello", "t")
    assert sent.returncode == 0, sent.stderr
    got = run("client", "--url", service_url, "consume", "-s", "s", "-p", "Earliest", "t")
    assert (got.returncode, "content:hello" in got.stdout) == (0, True), got.stdout + got.stderr


@pytest.mark.parametrize(
    ("option", "refusal"),
    [("--data", "cannot lock {path}/pulsarium.lock"), ("--capture", "--capture: {path}")],
)
def test_a_file_that_cannot_be_locked_is_refused_in_one_line(option: str, refusal: str, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    refused = run(*SERVE, option, str(path))
    assert (refused.returncode > 0, refused.stdout) == (True, "")
    reason = refusal.format(path=path)
    assert refused.stderr == f"pulsarium: {reason}: this system has no file locks; use Linux, macOS or WSL\n"
