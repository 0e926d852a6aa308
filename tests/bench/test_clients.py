"""The comparison of our client with the official client."""

from __future__ import annotations

import json

import pytest

from bench.clients.programs import CLIENTS, OPERATIONS, OURS, REFERENCE
from bench.clients.table import missed, ratios, table
from bench.measure import Run
from tests.bench.bench import bench


def run(rate: float) -> Run:
    return Run(1000, 1000 / rate, 0.1, 0.1, (0.001, 0.002))


def runs(ours: float, reference: float) -> dict[str, list[Run]]:
    return {client: [run(ours if client in OURS else reference)] for client in CLIENTS}


def test_ratios_are_of_the_official_asyncio_module() -> None:
    told = ratios({**runs(300, 100), OURS[1]: [run(50)], REFERENCE: [run(100)]})
    assert told == {OURS[0]: pytest.approx(3), OURS[1]: pytest.approx(0.5)}


def test_the_bench_reports_missed_targets() -> None:
    results = {"send": runs(90, 100), "publish-batched": runs(49_999, 10), "receive-batched": runs(50_001, 10)}
    assert missed(results) == [
        "publish, batched, pulsarium, trio: 49,999/s, not 50,000",
        "publish, batched, pulsarium, asyncio: 49,999/s, not 50,000",
        "send and wait for the receipt, pulsarium, trio: 0.90 of official, asyncio",
        "send and wait for the receipt, pulsarium, asyncio: 0.90 of official, asyncio",
    ]
    shown = table(results)
    assert "0.90x" in shown
    assert "MISSED: publish, batched, pulsarium, trio" in shown


@pytest.mark.heavy
def test_every_client_does_every_operation() -> None:
    told = bench("--clients", "--quick", "--json", "-")
    assert told.returncode == 0, told.stderr
    rows = json.loads(told.stdout)["clients"]
    assert rows.keys() == {operation.name for operation in OPERATIONS}
    for row in rows.values():
        assert row.keys() == {*CLIENTS, "ratios"}
        assert all(row[client]["rate"] > 0 for client in CLIENTS)


@pytest.mark.parametrize("options", [("no-such-program",), ("send", "--against", "pulsar")])
def test_the_bench_refuses_options_that_do_not_fit(options: tuple[str, ...]) -> None:
    assert bench("--clients", *options).returncode == 2
