"""`bin/pulsar-daemon start|stop|restart SERVICE`: run a service in the background, with files for log and pid."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pulsarium.cli.refusal import CommandRefusal, RequestRefused, RunRefused
from pulsarium.cli.terminal import guard

SERVICES: Final = ("standalone", "broker", "zookeeper", "configuration-store", "bookie", "autorecovery", "proxy")
READY: Final = "service is ready"
START_SECONDS: Final = 30
STOP_SECONDS: Final = 30  # unless PULSAR_STOP_TIMEOUT is set
PAUSE_SECONDS: Final = 0.05
_USAGE: Final = (
    f"usage: pulsar-daemon start|stop|restart {'|'.join(SERVICES)} [-force to stop, or options of bin/pulsar SERVICE]"
)


def main(home: Path, arguments: Sequence[str]) -> None:
    """Run the command line in the folder `home`."""
    guard()
    try:
        _run(home, arguments)
    except CommandRefusal as refusal:
        refusal.show()
        sys.exit(refusal.exit_code)


def _run(home: Path, arguments: Sequence[str]) -> None:
    if len(arguments) < 2 or arguments[0] not in ("start", "stop", "restart"):
        print(_USAGE)
        sys.exit(1)
    verb, service, *options = arguments
    if service not in SERVICES:
        raise RequestRefused(f"pulsar-daemon {verb} {service} does not exist; use {', '.join(SERVICES)}")
    folder = _folder(home)
    pid_file = Path(os.environ.get("PULSAR_PID_DIR") or folder) / f"pulsar-{service}.pid"
    if verb in ("stop", "restart"):
        stop(service, pid_file, force="-force" in options)
    if verb in ("start", "restart"):
        log = folder / f"pulsar-{service}-{socket.gethostname()}.log"
        program = str(home / "bin/pulsar")
        start(service, [program, service, *(each for each in options if each != "-force")], log, pid_file)


def _folder(home: Path) -> Path:
    """Return the folder for log and pid: PULSAR_LOG_DIR, logs, or a writable folder for temporary files."""
    folder = Path(os.environ.get("PULSAR_LOG_DIR") or home / "logs")
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        folder = Path(tempfile.gettempdir()) / "pulsar-logs"
        folder.mkdir(exist_ok=True)
    return folder


def start(service: str, command: Sequence[str], log: Path, pid_file: Path) -> None:
    """Start a service and wait until it serves.

    Raise `CommandRefusal`, with the last line of its log, when it does not.
    """
    running = _running(service, pid_file)
    if running is not None:
        raise RunRefused(f"{service} is running as process {running}; stop it with pulsar-daemon stop {service}")
    print(f"starting {service}, logging to {log}", flush=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    pid_file.write_text(f"{process.pid}\n", encoding="ascii")
    for _ in range(round(START_SECONDS / PAUSE_SECONDS)):
        if process.poll() is not None:
            pid_file.unlink()
            last = log.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
            raise RunRefused(f"{service} did not start: {last.removeprefix('pulsarium: ') or f'see {log}'}")
        if READY in log.read_text(encoding="utf-8", errors="replace"):
            print(f"{service} runs as process {process.pid}")
            process.returncode = 0  # no warning from Popen: the service outlives this program
            return
        time.sleep(PAUSE_SECONDS)
    raise RunRefused(f"{service} is not ready after {START_SECONDS} s; see {log}")


def stop(service: str, pid_file: Path, *, force: bool) -> None:
    """Stop a service and wait for its end. Raise `RunRefused` when it does not stop in time."""
    pid = _running(service, pid_file)
    if pid is None:
        print(f"no {service} to stop")
        pid_file.unlink(missing_ok=True)
        return
    print(f"stopping {service}", flush=True)
    os.kill(pid, signal.SIGTERM)
    seconds = int(os.environ.get("PULSAR_STOP_TIMEOUT") or STOP_SECONDS)
    for _ in range(round(seconds / PAUSE_SECONDS)):
        if not _alive(pid):
            break
        time.sleep(PAUSE_SECONDS)
    else:
        if not force:
            raise RunRefused(f"{service}, process {pid}, did not stop in {seconds} s; stop it with -force")
        os.kill(pid, signal.SIGKILL)
    pid_file.unlink(missing_ok=True)
    print(f"{service} stopped")


def _running(service: str, pid_file: Path) -> int | None:
    """Return the process in the pid file if it runs this service, else None."""
    try:
        pid = int(pid_file.read_text(encoding="ascii"))
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if service.encode() in command.split(b"\0") and _alive(pid) else None


def _alive(pid: int) -> bool:
    """Return whether a process runs. A zombie does not: in a container, process 1 may never wait for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False
