"""A killed launcher leaves no process: `serve --with-parent`, `exec`, and the helpers of this repository."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.foreign.deadline import eventually
from yardsticks.servers import ending

PULSARIUM = (sys.executable, "-P", "-m", "pulsarium")
SERVE = (*PULSARIUM, "serve", "--port", "0", "--http-port", "0", "--with-parent")
WAITING = "import os, time; print(os.getppid(), os.getpid(), flush=True); time.sleep(600)"
ROOT = Path(__file__).parents[2]
# Launchers, which print the ids of the processes below them.
PLAIN = f"""
import subprocess, sys
broker = subprocess.Popen({SERVE!r}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
assert broker.stdout.readline().startswith(b"pulsarium ready")
print(broker.pid, flush=True)
sys.stdin.read()
"""
HELPER = """
import sys, tempfile
from pathlib import Path
from tests.foreign.broker_process import BrokerProcess
with tempfile.TemporaryDirectory() as folder:
    print(BrokerProcess(Path(folder)).pid, flush=True)
    sys.stdin.read()
"""
ACCOMPANIED = (*PULSARIUM, "exec", "--with-parent", "--", sys.executable, "-c")
EXEC = f"""
import subprocess, sys
subprocess.Popen({(*ACCOMPANIED, WAITING)!r}, stdin=subprocess.DEVNULL)
sys.stdin.read()
"""


def is_over(pid: int) -> bool:
    """Return whether a process has ended, and waits at most for its new parent to ask for its status."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


@contextmanager
def started(*command: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Yield a process and the ids that it prints, and leave none of them behind."""
    pids: list[int] = []
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    ) as process:
        assert process.stdout is not None
        try:
            pids += map(int, process.stdout.readline().split())
            yield process, pids
        finally:
            for pid in (process.pid, *pids):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the state of a process is read from /proc")


@pytest.mark.parametrize(
    ("launcher", "processes"), [(PLAIN, 1), (HELPER, 1), (EXEC, 2)], ids=["serve", "helper", "exec"]
)
def test_a_killed_launcher_leaves_no_process(launcher: str, processes: int) -> None:
    with started(sys.executable, "-c", launcher) as (process, pids):
        assert len(pids) == processes
        assert not any(map(is_over, pids))
        process.kill()
        process.wait()
        eventually(lambda: all(map(is_over, pids)), what=f"the end of {pids}")


def test_a_killed_exec_ends_its_command() -> None:
    with started(*PULSARIUM, "exec", "--", sys.executable, "-c", WAITING) as (process, pids):
        assert pids[0] == process.pid
        process.kill()
        process.wait()
        eventually(lambda: is_over(pids[1]), what="the end of the command")


def test_a_command_that_ignores_sigterm_is_killed() -> None:
    deaf = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAITING}"
    launcher = EXEC.replace(repr(WAITING), repr(deaf))
    with started(sys.executable, "-c", launcher) as (process, pids):
        assert len(pids) == 2
        process.kill()
        process.wait()
        eventually(lambda: all(map(is_over, pids)), what=f"the end of {pids}")


def test_the_end_of_a_pipe_on_standard_input_ends_a_broker() -> None:
    with ending(subprocess.Popen(SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline().startswith("pulsarium ready")
        assert broker.stdin is not None
        broker.stdin.write("text that nobody reads\n")
        broker.stdin.close()
        assert broker.wait(30) == 0


def test_the_end_of_standard_input_is_for_the_command_of_exec() -> None:
    command = (*PULSARIUM, "exec", "--with-parent", "--", sys.executable, "-c", "import sys; print(sys.stdin.read())")
    run = subprocess.run(command, input="text", capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("text\n", "")
