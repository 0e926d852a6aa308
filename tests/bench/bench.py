"""Helpers for the tests of bench."""

from __future__ import annotations

import os
import subprocess
import sys

from yardsticks.bench.programs import PROGRAMS
from yardsticks.servers import ROOT

BY_NAME = {program.name: program for program in PROGRAMS}

# Figures that are a small difference of two measurements, or computed with one. They may be 0 or less.
DIFFERENCES = (".memory",)


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    """Run the program of scripts/bench, without its look at .venv."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-m", "yardsticks.bench", *options]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
