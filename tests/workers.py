"""Python programs of the tests, several at once, which tell what they do in lines of JSON on their standard output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Said(NamedTuple):
    """A line that a program printed. `line` is None when the program has ended with `status`."""

    program: int  # the program's place in the list
    line: dict[str, Any] | None
    status: int = 0


Heard = SimpleQueue[Said]


def unmeasured() -> dict[str, str]:
    """Return the environment for a program that tells what it has imported: coverage.py imports modules of its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


@contextmanager
def workers(programs: Sequence[Sequence[str]]) -> Iterator[Heard]:
    """Run modules with their arguments; hear each line, and at last that each ended. They are killed with the block."""
    heard: Heard = SimpleQueue()
    environment = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-P", "-m", *program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for program in programs
    ]
    readers = [
        threading.Thread(target=_read, args=(number, process, heard)) for number, process in enumerate(processes)
    ]
    try:
        for reader in readers:
            reader.start()
        yield heard
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for reader in readers:
            reader.join()
        for process in processes:
            assert process.stdout is not None
            process.stdout.close()


def _read(program: int, process: subprocess.Popen[str], heard: Heard) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        heard.put(Said(program, json.loads(line)))
    heard.put(Said(program, None, process.wait()))
