"""Runs scenarios against one broker, many at once: most of their time they wait."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from pulsarium.client import Client, connect
from tests.foreign.admin import Admin
from tests.foreign.broker_process import Address

from .normal import Facts, normal
from .scenario import SECONDS, Scenario
from .world import World

AT_ONCE = 12


@dataclass(frozen=True)
class Observation:
    """What one run of a scenario observed, or what kept it from that."""

    facts: Facts = None
    error: Exception | None = None
    seconds: float = 0.0


def observe(
    scenarios: Iterable[Scenario], address: Address, loop: str, keys: Mapping[str, Any]
) -> dict[str, Observation]:
    """Of each scenario by its name, all under one loop (`trio` or `asyncio`) and with one client."""
    admin, namespace = Admin(address.admin_url), f"public/{loop}-{uuid.uuid4().hex[:8]}"
    admin.create_namespace(namespace)
    observations: dict[str, Observation] = {}

    async def all_of_them() -> None:
        turns = anyio.Semaphore(AT_ONCE)

        async def one(scenario: Scenario, client: Client) -> None:
            async with turns:
                world = World(client, address, namespace, scenario.name, loop, keys)
                observations[scenario.name] = await _observation(scenario, world)

        async with (
            connect(address.service_url, admin_url=address.admin_url) as client,
            anyio.create_task_group() as tasks,
        ):
            for scenario in scenarios:
                tasks.start_soon(one, scenario, client)

    anyio.run(all_of_them, backend=loop)
    return observations


async def _observation(scenario: Scenario, world: World) -> Observation:
    start = anyio.current_time()
    try:
        with anyio.fail_after(SECONDS):
            observed = await scenario.program(world)
        facts = normal(observed, _names(world))
    except Exception as error:
        return Observation(error=error)
    return Observation(facts, seconds=anyio.current_time() - start)


def _names(world: World) -> dict[str, str]:
    """Texts that are of this run only."""
    own: dict[str, str] = {}
    for name in world.namespaces:
        own |= {f"non-persistent://{name}/": "non-persistent ", f"persistent://{name}/": "", name: "namespace"}
    return own | {f"persistent://{world.namespace}/{world.scenario}-": "", world.scenario: "scenario"}
