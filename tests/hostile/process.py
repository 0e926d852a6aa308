"""Run `pulsarium serve` in a process of its own, and measure its memory and its files from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

COMMAND = (sys.executable, "-P", "-m", "pulsarium", "serve", "--port", "0", "--http-port", "0", "--with-parent")
MB = 1 << 20
LIMITED = 'ulimit -Sn "$1"; ulimit -Hn "$2"; shift 2; exec "$@"'


@dataclass
class Served:
    """A broker process that has printed that it is ready."""

    pid: int
    log: Path
    service_url: str
    admin_url: str

    @property
    def address(self) -> tuple[str, int]:
        """Return the address of the binary port."""
        return _address(self.service_url)

    @property
    def web_address(self) -> tuple[str, int]:
        """Return the address of the HTTP port."""
        return _address(self.admin_url)

    @property
    def memory(self) -> int:
        """Return the bytes of memory that no file backs."""
        return self._status("RssAnon")

    @property
    def peak(self) -> int:
        """Return the peak memory since `forget_peak`, in bytes."""
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    @property
    def files(self) -> int:
        """Return the number of open file descriptors."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def _status(self, name: str) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


@contextmanager
def serving(home: Path, *options: str, files: tuple[int, int] | None = None) -> Iterator[Served]:
    """Run a broker during the block, and check that it stops without an error.

    `files` is the soft and the hard limit of the broker's file descriptors.
    """
    log = home / "stderr"
    limited = () if files is None else ("sh", "-c", LIMITED, "sh", *map(str, files))
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [*limited, *COMMAND, *options], stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=home
        ) as process,
    ):
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            assert words[:2] == ["pulsarium", "ready"], log.read_text()
            yield Served(process.pid, log, words[2], words[3])
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
        finally:
            process.kill()
    assert "Traceback" not in log.read_text()
    assert process.returncode == 0
