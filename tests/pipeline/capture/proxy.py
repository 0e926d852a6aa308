"""The capture proxy between clients and a broker."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.foreign.broker_process import Address
from yardsticks.servers import ending


@contextlib.contextmanager
def recording(broker: Address, path: Path, *, keep_entry: int | None = None) -> Iterator[Address]:
    """Run a capture proxy, and yield its address. The capture is at `path` once the block has ended."""
    command = [sys.executable, "-P", "-m", "pulsarium", "capture", "proxy", broker.service_url, "--out", str(path)]
    if keep_entry is not None:
        command += ["--keep-entry", str(keep_entry)]
    with ending(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as process:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        assert words[:2] == ["pulsarium", "proxy"], words
        yield Address(words[2], broker.admin_url)
        process.terminate()
        process.communicate(timeout=50)
    assert process.returncode == 0
