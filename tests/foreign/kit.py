"""Scenarios of the conformance kit, which an official client plays against the broker of a test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from pulsarium.conformance.clients import Release
from pulsarium.conformance.run import Runner
from pulsarium.conformance.scenarios import SCENARIOS
from pulsarium.conformance.side import given_broker

from .broker_process import Address
from .toolchains import SETUP, in_ci


def ready(client: str) -> Release:
    """Return a client with its adapter. Without it, skip the test, or build it where CI=true."""
    release = Release(client)
    if not release.is_built and not in_ci():
        pytest.skip(f"{SETUP}: the adapter {client} is not built")
    release.prepare()
    return release


def play(client: str, address: Address, folder: Path, scenarios: Iterable[str]) -> None:
    """Run scenarios, and fail when one does. The caller judges broken rules of the linter."""
    release = ready(client)
    with given_broker(address.service_url, address.admin_url, folder) as sides:
        runner = Runner(release.command, sides, "pulsar-5.0", folder, release.environment)
        results = runner.run(SCENARIOS[each] for each in scenarios)
    bad = {each.scenario.name: each.reason for each in results if each.is_bad and not each.rules}
    assert not bad, bad  # pytest explains the assertions of test modules only
