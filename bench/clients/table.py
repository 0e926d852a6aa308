"""Measure the clients, and print their rates and their ratios to the official asyncio module."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from bench.brokers import Broker
from bench.clients.programs import CLIENTS, OPERATIONS, OURS, PROGRAMS, REFERENCE, Operation
from bench.measure import Run, measure
from bench.report import machine, percentile

Runs = Mapping[str, Sequence[Run]]


def measure_clients(
    broker: Broker,
    operations: Sequence[Operation],
    count: Callable[[Operation], int],
    warm_ups: int,
    repetitions: int,
    say: Callable[[str], None],
) -> dict[str, dict[str, list[Run]]]:
    """Measure the clients in turn, and return the counted runs by operation and client."""
    results: dict[str, dict[str, list[Run]]] = {}
    for operation in operations:
        say(f"running {operation.name}")
        runs = results[operation.name] = {client: [] for client in CLIENTS}
        for repetition in range(warm_ups + repetitions):
            for number, client in enumerate(CLIENTS):
                topic = f"persistent://public/default/bench-{os.getpid()}-{operation.name}-{number}-{repetition}"
                run = measure(PROGRAMS[client, operation.name], broker, topic, count(operation))
                if repetition >= warm_ups:
                    runs[client].append(run)
    return results


def rate(runs: Sequence[Run]) -> float:
    return median(run.rate for run in runs)


def ratios(runs: Runs) -> dict[str, float]:
    """Return the ratios of our rates to the reference's rate."""
    return {client: rate(runs[client]) / rate(runs[REFERENCE]) for client in OURS}


def missed(results: Mapping[str, Runs]) -> list[str]:
    """Return the missed targets as text."""
    out = []
    for operation in OPERATIONS:
        runs = results.get(operation.name)
        for client, ratio in ratios(runs).items() if runs else ():
            if ratio < 1:
                out.append(f"{operation.title}, {client}: {ratio:.2f} of {REFERENCE}")
            if operation.target is not None and runs and rate(runs[client]) < operation.target:
                out.append(f"{operation.title}, {client}: {rate(runs[client]):,.0f}/s, not {operation.target:,.0f}")
    return out


def as_json(results: Mapping[str, Runs]) -> dict[str, Any]:
    rows = {
        name: {
            client: {
                "rate": rate(runs[client]),
                "runs": [run.rate for run in runs[client]],
                "client_cpu_us": median(run.client_cpu / run.operations * 1e6 for run in runs[client]),
                "p50_us": median(percentile(run.latencies, 50) * 1e6 for run in runs[client]),
                "p99_us": median(percentile(run.latencies, 99) * 1e6 for run in runs[client]),
            }
            for client in CLIENTS
        }
        | {"ratios": ratios(runs)}
        for name, runs in results.items()
    }
    return {"machine": machine(), "clients": rows, "missed": missed(results)}


def table(results: Mapping[str, Runs]) -> str:
    titles = {operation.name: operation.title for operation in OPERATIONS}
    head = ["messages a second", *CLIENTS, *(f"{client.split(', ')[1]} / {REFERENCE}" for client in OURS)]
    rows = [head]
    for name, runs in results.items():
        rows.append(
            [titles[name], *(f"{rate(runs[c]):,.0f}" for c in CLIENTS), *(f"{r:.2f}x" for r in ratios(runs).values())]
        )
    rows.append(["client CPU, us each", *CLIENTS, "", ""])
    for name, runs in results.items():
        cpu = [median(run.client_cpu / run.operations * 1e6 for run in runs[client]) for client in CLIENTS]
        rows.append([titles[name], *(f"{value:,.1f}" for value in cpu), "", ""])
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
    lines.insert(len(results) + 1, "")
    return "\n".join([*lines, *(f"MISSED: {text}" for text in missed(results))])
