"""Run scenarios against one broker. Many run at once, because most of their time is waiting."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import anyio

from pulsarium.client import Client, connect
from tests.foreign.admin import Admin
from tests.foreign.broker_process import Address

from .normal import Facts, normal
from .scenario import SECONDS, Scenario
from .world import World

AT_ONCE = 12


def observe(
    scenarios: Iterable[Scenario], address: Address, loop: str, keys: Mapping[str, Any]
) -> dict[str, Facts | Exception]:
    """Run scenarios under one loop (`trio` or `asyncio`) with one client. Return each observation or error."""
    admin, namespace = Admin(address.admin_url), f"public/{loop}-{uuid.uuid4().hex[:8]}"
    admin.create_namespace(namespace)
    observations: dict[str, Facts | Exception] = {}

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


async def _observation(scenario: Scenario, world: World) -> Facts | Exception:
    try:
        with anyio.fail_after(SECONDS):
            observed = await scenario.program(world)
        return normal(observed, _names(world))
    except Exception as error:
        return error


def _names(world: World) -> dict[str, str]:
    """Return the texts that only this run has, with their replacements."""
    own: dict[str, str] = {}
    for name in world.namespaces:
        own |= {f"non-persistent://{name}/": "non-persistent ", f"persistent://{name}/": "", name: "namespace"}
    return own | {f"persistent://{world.namespace}/{world.scenario}-": "", world.scenario: "scenario"}
