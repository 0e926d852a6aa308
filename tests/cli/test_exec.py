"""`pulsarium exec`: a broker for as long as a command runs."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulsarium.cli.serve import gather
from tests.cli.interrupts import HEEDED
from tests.docs.blocks import ROOT, blocks
from yardsticks.servers import ending

# A busy machine holds the loop, and a warning of that is no output of the command.
UNHURRIED = "from pulsarium.broker.net import stalls; stalls.LEAST = 60; "
EXEC = (sys.executable, "-P", "-c", HEEDED + UNHURRIED + "from pulsarium.__main__ import main; main()", "exec")
PULSARIUM = (sys.executable, "-P", "-m", "pulsarium")
URLS = "import os; print(*(os.environ.get(f'{tool}_{name}') for tool in ('PULSAR', 'PULSARIUM') for name in NAMES))"
PLAIN = "NAMES = ('SERVICE_URL', 'ADMIN_URL', 'SERVICE_URL_TLS', 'ADMIN_URL_TLS')\n" + URLS
# Says when it is ready, and for each signal whether the broker still runs. A signal may interrupt such a line, in whose
# buffer print() would find no room for another one. A signal just before readline() would not end its wait: Python
# would hear it at the end of the line.
ENDURING = """
import os, select, signal, socket, sys
from urllib.parse import urlsplit

def say(line):
    os.write(1, line.encode() + b"\\n")

def heard(number, frame):
    url = urlsplit(os.environ["PULSAR_SERVICE_URL"])
    socket.create_connection((url.hostname, url.port), timeout=30).close()
    say(signal.Signals(number).name)

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, heard)
woken, wakes = socket.socketpair()
wakes.setblocking(False)
signal.set_wakeup_fd(wakes.fileno())
say("ready")
while sys.stdin not in select.select([sys.stdin, woken], [], [])[0]:
    woken.recv(100)
sys.exit(0 if sys.stdin.readline() == "end\\n" else 9)
"""


def ran(*line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*EXEC, *line], check=False, capture_output=True, text=True, env={**os.environ, **environment}
    )


def python(code: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-P", "-c", code)


def test_the_command_finds_the_broker_in_its_environment() -> None:
    elsewhere = {"PULSARIUM_ADMIN_URL": "http://elsewhere:1", "PULSAR_SERVICE_URL_TLS": "pulsar+ssl://elsewhere:1"}
    run = ran(*python(PLAIN), **elsewhere)
    service_url, admin_url, *rest = run.stdout.split()
    assert (run.returncode, run.stderr) == (0, "")
    assert service_url.startswith("pulsar://127.0.0.1:")
    assert admin_url.startswith("http://127.0.0.1:")
    assert rest == ["None", "None", service_url, admin_url, "None", "None"]


@pytest.mark.parametrize(
    ("code", "status"),
    [("raise SystemExit(3)", 3), ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL)],
)
def test_the_exit_code_is_that_of_the_command(code: str, status: int) -> None:
    run = ran(*python(code))
    assert (run.returncode, run.stdout, run.stderr) == (status, "", "")


def test_a_command_that_is_not_there_is_one_line_and_127() -> None:
    run = ran("--", "no-such-program", "-x")
    assert (run.returncode, run.stdout) == (127, "")
    assert run.stderr.startswith("pulsarium: exec: no-such-program: command not found; ")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize("mode", [0o644, 0o755])
def test_a_file_that_cannot_be_executed_is_one_line_and_126(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"\x00nothing to run")
    path.chmod(mode)
    run = ran("--", str(path))
    assert (run.returncode, run.stdout) == (126, "")
    assert run.stderr.startswith(f"pulsarium: exec: {path} cannot be executed")
    assert run.stderr.count("\n") == 1


def test_a_snapshot_of_the_end_is_a_beginning(tmp_path: Path) -> None:
    topics = ("admin", "topics")
    made = ran("--export", str(tmp_path / "all.snapshot"), "--", *PULSARIUM, *topics, "create", "orders")
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    run = ran("--restore", str(tmp_path / "all.snapshot"), "--", *PULSARIUM, *topics, "list", "public/default")
    assert (run.returncode, run.stdout, run.stderr) == (0, "persistent://public/default/orders\n", "")


def test_a_snapshot_that_has_no_place_is_refused_before_the_command_runs(tmp_path: Path) -> None:
    run = ran("--export", str(tmp_path / "absent" / "all.snapshot"), *python("print('ran')"))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == f"pulsarium: --export: {tmp_path / 'absent'} is not a directory; create it first\n"


def test_a_port_that_is_taken_is_refused_before_the_command_runs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = ran("--port", str(port), *python("print('ran')"))
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith(f"pulsarium: port {port} is in use")


@contextmanager
def enduring(begin: str = EXEC[3], stdin: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """Yield `exec` once its command is ready. `begin` is the program that runs it."""
    started = subprocess.Popen(
        [*EXEC[:3], begin, *EXEC[4:], *python(ENDURING)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # no terminal but that of the test, so only the test sends signals
    )
    with ending(started) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        yield run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_goes_on_to_the_command_and_the_broker_outlives_the_command(number: signal.Signals) -> None:
    with enduring() as run:
        assert run.stdout is not None
        run.send_signal(number)
        assert run.stdout.readline() == f"{number.name}\n"
        assert run.communicate("end\n") == ("", "")
        assert run.returncode == 0


def test_the_ready_file_is_there_while_the_command_runs(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    run = ran("--ready-file", str(path), *python(f"print(open({str(path)!r}).read())"))
    file = json.loads(run.stdout)
    (page,) = (json.loads(each.text) for each in blocks(ROOT / "docs" / "testing.md") if each.language == "json")
    assert [file[name].partition(":")[0] for name in page] == [url.partition(":")[0] for url in page.values()]
    assert not path.exists()


def test_ctrl_c_on_a_terminal_reaches_the_command_once() -> None:
    """The terminal signals its whole foreground group. A signal that `exec` forwarded too would arrive twice."""
    leader, follower = os.openpty()
    # A session leader that opens a terminal makes it the session's controlling terminal.
    with enduring("import os; os.open(os.ttyname(0), os.O_RDWR)\n" + EXEC[3], follower) as run:
        os.close(follower)
        assert run.stdout is not None
        os.write(leader, b"\x03")
        assert run.stdout.readline() == "SIGINT\n"
        run.send_signal(signal.SIGUSR1)  # goes on to the command after `exec` has taken its own SIGINT
        assert run.stdout.readline() == "SIGUSR1\n"
        os.write(leader, b"end\n")
        assert run.stdout.read() == ""
        assert run.wait(30) == 0
    os.close(leader)


def asked(**given: object) -> dict[str, object]:
    """Return the parameters that click parses from a command line with these options."""
    from pulsarium.cli.exec import exec_

    others = {parameter.name: None for parameter in exec_.params if parameter.name not in ("command", "export")}
    return {**others, "profile": "pip", "pip": (), "brokers": 1, "overrides": (), "compaction_options": (), **given}


def test_ports_of_a_file_are_left_alone(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerServicePort=6650\nwebServicePort=8080\n")
    options, _ = gather(asked(config=conf, http_port=7), free_ports=True)
    assert options.ports == (0, 7, None, None)
    options, _ = gather(asked(config=conf, overrides=("brokerServicePort=8",)), free_ports=True)
    assert options.ports == (8, 0, None, None)
    options, _ = gather(asked(config=conf))
    assert options.ports == (6650, 8080, None, None)


def test_a_command_runs_through_a_proxy_in_front_of_another_broker() -> None:
    inner = python(PLAIN)[1:]
    shell = f'exec {shlex.join([*EXEC, "--proxy"])} "$PULSAR_SERVICE_URL" --proxy-admin-url "$PULSAR_ADMIN_URL" -- '
    code = "import os; print(os.environ['PULSAR_SERVICE_URL'])"
    run = ran("--", "sh", "-c", f"{shlex.join([sys.executable, '-c', code])}; {shell}{shlex.join(inner)}")
    broker, service_url, admin_url, *_ = run.stdout.split()
    assert (run.returncode, run.stderr) == (0, "")
    assert service_url.startswith("pulsar://127.0.0.1:")
    assert service_url != broker
    assert admin_url.startswith("http://127.0.0.1:")


def test_an_option_of_a_broker_is_refused_with_a_proxy() -> None:
    run = ran("--proxy", "pulsar://localhost:1", "--brokers", "2", *python("pass"))
    assert run.returncode == 2
    assert "exec --proxy runs no broker: leave out --brokers" in run.stderr


@pytest.mark.parametrize("words", [["--proxy-admin-url", "http://localhost:1"], ["--yes-not-production"]])
def test_an_option_of_a_proxy_is_refused_without_one(words: list[str]) -> None:
    run = ran(*words, *python("pass"))
    assert run.returncode == 2
    assert f"exec: {words[0]} is for a proxy: pass --proxy URL, too" in run.stderr


def test_a_proxy_logs_in_the_format_that_is_asked_for() -> None:
    code = (
        "import os, socket; host, port = os.environ['PULSAR_SERVICE_URL'][9:].split(':'); "
        "socket.create_connection((host, int(port))).recv(1)"
    )
    run = ran("--proxy", "pulsar://localhost:1", "--log-format", "json", *python(code))
    assert '"cannot connect to a broker"' in run.stderr
    assert json.loads(run.stderr.splitlines()[0])


def test_a_broker_that_may_be_production_is_warned_of() -> None:
    run = ran("--proxy", "pulsar://pulsar.example.com", *python("pass"))
    assert run.returncode == 0
    assert run.stderr.startswith("warning: pulsar://pulsar.example.com:6650 may be production, because it is neither")
    assert "faults and masks are refused" in run.stderr
