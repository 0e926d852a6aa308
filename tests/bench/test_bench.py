"""All of it, against a broker of its own: every figure must come out."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from bench.brokers import ROOT
from bench.programs import PROGRAMS


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    """What scripts/bench runs, without its look at .venv."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-m", "bench", *options]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


@pytest.mark.heavy
def test_quick_yields_every_figure() -> None:
    run = bench("--quick", "--json", "-")
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    medians = {f["figure"]: f["brokers"]["pulsarium"]["median"] for f in told["figures"]}
    expected = {"start-connect", "start-ready", "idle-rss", "idle-rss-anon"}
    expected |= {f"{p.name}.{what}" for p in PROGRAMS for what in ("cpu", "rate", "broker-busy", "client-busy")}
    expected |= {f"{p.name}.{what}" for p in PROGRAMS if p.latencies for what in ("p50", "p99")}
    assert medians.keys() == expected
    assert [name for name, median in medians.items() if median <= 0] == []


def test_an_unknown_program_is_an_error() -> None:
    run = bench("no-such-program")
    assert run.returncode == 2
    assert "no such program: no-such-program" in run.stderr


def test_help_teaches() -> None:
    text = bench("--help").stdout
    assert all(word in text for word in ("--against", "--json FILE", "--quick", "medians", "scripts/reference-pulsar"))


def test_the_list_names_every_program() -> None:
    text = bench("--list").stdout
    assert [line.split()[0] for line in text.splitlines()] == [program.name for program in PROGRAMS]
