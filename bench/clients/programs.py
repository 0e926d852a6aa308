"""The operations that are measured of each client, on one broker, in turn."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from bench.program import Program
from bench.work import Timed, Work

PAYLOAD = 100

CLIENTS = ("pulsarium, trio", "pulsarium, asyncio", "official, asyncio", "official")
OURS = CLIENTS[:2]
REFERENCE = CLIENTS[2]
"""The client whose rate ours must reach."""


@dataclass(frozen=True)
class Operation:
    """A row of the table: `function` of each client's driver. `target` is the least number of messages a second."""

    name: str
    title: str
    count: int
    quick: int
    function: str
    options: tuple[tuple[str, object], ...] = ()
    latencies: bool = False
    target: float | None = None


OPERATIONS = (
    Operation("publish-unbatched", "publish, unbatched", 20_000, 500, "publish", (("batched", False),)),
    Operation("publish-batched", "publish, batched", 100_000, 500, "publish", (("batched", True),), target=50_000),
    Operation("receive-unbatched", "receive + ack, unbatched", 20_000, 500, "receive", (("batched", False),)),
    Operation(
        "receive-batched", "receive + ack, batched", 100_000, 500, "receive", (("batched", True),), target=50_000
    ),
    Operation("send", "send and wait for the receipt", 3000, 50, "send", latencies=True),
    Operation("last-message-id", "get_last_message_id", 3000, 50, "last_message_id", latencies=True),
)


def program_of(client: str, operation: Operation) -> Program:
    return Program(
        f"{operation.name} on {client}",
        operation.title,
        operation.count,
        operation.quick,
        lambda work: _prepare(client, operation, work),
        latencies=operation.latencies,
        size=PAYLOAD,
    )


def _prepare(client: str, operation: Operation, work: Work) -> Timed:
    """Import a client only in the process that runs it."""
    options = dict(operation.options)
    library, _, backend = client.partition(", ")
    if library == "pulsarium":
        own = importlib.import_module("bench.clients.own")
        timed: Timed = own.program(backend, getattr(own, operation.function), **options)(work)
    elif backend:
        official = importlib.import_module("bench.clients.official_asyncio")
        timed = official.program(getattr(official, operation.function), **options)(work)
    else:
        driver = importlib.import_module("bench.official_driver")
        timed = OFFICIAL[operation.function](driver, work, **options)
    return timed


OFFICIAL: dict[str, Callable[..., Timed]] = {
    "publish": lambda driver, work, batched: driver.publish(work, batched=batched),
    "receive": lambda driver, work, batched: driver.consume(
        work, kind=driver.pulsar.ConsumerType.Shared, batched=batched
    ),
    "send": lambda driver, work: driver.send_and_wait(work),
    "last_message_id": lambda driver, work: driver.last_message_id(work),
}

PROGRAMS = {(client, operation.name): program_of(client, operation) for client in CLIENTS for operation in OPERATIONS}
BY_NAME = {program.name: program for program in PROGRAMS.values()}
