"""`bin/pulsar-daemon`: a broker in the background, its log, and how it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarium.cli.pulsar import daemon
from yardsticks.servers import ending

# A replacement of bin/pulsar that prints its arguments, says that it is ready, and waits.
SERVES = f"""#!{sys.executable} -P
import sys, time
print(sys.argv[1:], flush=True)
print("messaging service is ready", flush=True)
time.sleep(600)
"""
FAILS = f"""#!{sys.executable} -P
import sys
sys.exit("pulsarium: port 6650 is in use")
"""


class Home:
    """A folder with a bin/pulsar."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pid_file = folder / "logs/pulsar-standalone.pid"
        (folder / "bin").mkdir()

    def install(self, program: str) -> None:
        path = self.folder / "bin/pulsar"
        path.write_text(program)
        path.chmod(0o755)

    def run(self, *arguments: str) -> None:
        daemon.main(self.folder, arguments)

    @property
    def log(self) -> str:
        (path,) = (self.folder / "logs").glob("pulsar-standalone-*.log")
        return path.read_text()

    @property
    def pid(self) -> int:
        return int(self.pid_file.read_text())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    for name in ("PULSAR_LOG_DIR", "PULSAR_PID_DIR", "PULSAR_STOP_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(daemon, "PAUSE_SECONDS", 0.01)
    home = Home(tmp_path)
    home.install(SERVES)
    yield home
    if home.pid_file.exists():
        os.kill(home.pid, signal.SIGKILL)


def test_the_daemon_starts_a_broker_waits_until_it_serves_and_stops_it(
    home: Home, capfd: pytest.CaptureFixture[str]
) -> None:
    home.run("start", "standalone", "-nfw", "-nss")
    assert home.log == "['standalone', '-nfw', '-nss']\nmessaging service is ready\n"
    pid = home.pid
    assert capfd.readouterr().out.splitlines()[-1] == f"standalone runs as process {pid}"
    home.run("stop", "standalone")
    assert capfd.readouterr().out == "stopping standalone\nstandalone stopped\n"
    assert not home.pid_file.exists()
    assert os.waitpid(pid, 0) == (pid, signal.SIGTERM)


def test_a_second_daemon_is_not_started(home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    home.run("start", "standalone")
    pid = home.pid
    with pytest.raises(SystemExit):
        home.run("start", "standalone")
    said = f"pulsarium: standalone is running as process {pid}; stop it with pulsar-daemon stop standalone\n"
    assert (capfd.readouterr().err, home.pid) == (said, pid)
    home.run("stop", "standalone")


def test_restart_replaces_it(home: Home) -> None:
    home.run("start", "standalone")
    first = home.pid
    home.run("restart", "standalone")
    assert home.pid != first
    home.run("stop", "standalone")


def test_a_broker_that_does_not_start_is_told_with_its_reason(home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    home.install(FAILS)
    with pytest.raises(SystemExit):
        home.run("start", "standalone")
    assert capfd.readouterr().err == "pulsarium: standalone did not start: port 6650 is in use\n"
    assert not home.pid_file.exists()


def test_a_pid_of_another_program_is_left_alone(home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    home.pid_file.parent.mkdir()
    with ending(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)) as other:
        home.pid_file.write_text(f"{other.pid}\n")
        home.run("stop", "standalone")
        assert other.poll() is None
        other.communicate(b"\n")
    assert (capfd.readouterr().out, other.returncode) == ("no standalone to stop\n", 0)


def test_without_a_broker_there_is_nothing_to_stop(home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    home.run("stop", "standalone")
    assert capfd.readouterr().out == "no standalone to stop\n"


@pytest.mark.parametrize("variable", ["PULSAR_LOG_DIR", "PULSAR_PID_DIR"])
def test_its_folders_can_be_named(home: Home, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home.folder / "elsewhere"
    folder.mkdir()
    monkeypatch.setenv(variable, str(folder))
    home.run("start", "standalone")
    home.run("stop", "standalone")
    assert bool(list(folder.glob("*.log"))) is (variable == "PULSAR_LOG_DIR")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (
            ["start", "websocket"],
            2,
            (
                "pulsarium: pulsar-daemon start websocket does not exist; use standalone, broker, zookeeper, "
                "configuration-store, bookie, autorecovery, proxy\n"
            ),
        ),
        (["begin", "standalone"], 1, ""),
        (["start"], 1, ""),
        ([], 1, ""),
    ],
)
def test_the_daemon_refuses_what_cannot_be(
    home: Home, arguments: list[str], status: int, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        home.run(*arguments)
    out, err = capfd.readouterr()
    assert (ended.value.code, err, out.startswith("usage: pulsar-daemon")) == (status, said, not said)
