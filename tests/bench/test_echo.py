"""The echo servers with which a PING is compared."""

from __future__ import annotations

import pytest

from bench.echo import SERVERS, Trip, echoing, measure, shown
from tests.bench.bench import bench


@pytest.mark.parametrize("name", SERVERS)
def test_an_echo_server_sends_back_what_it_is_sent(name: str) -> None:
    with echoing(name) as server:
        trip = measure(server, 200)
    assert trip.time > 0


def test_the_table_has_medians() -> None:
    lines = shown({"socket echo": [Trip(100.0, 40.0), Trip(90.0, 60.0), Trip(500.0, 50.0)]}).splitlines()
    assert lines[-1] == "| socket echo | 100 | 50 | 10,000 |"


@pytest.mark.heavy
def test_echo_and_a_ping_at_a_tiny_size() -> None:
    run = bench("echo", "--count", "100", "--rounds", "1")
    assert run.returncode == 0, run.stderr
    names = [line.split(" | ")[0].removeprefix("| ") for line in run.stdout.splitlines()[2:]]
    assert names == ["socket echo", "trio echo", "PING to the broker"]
