"""Runs scenarios of the kit with clients that pass them all, or fail some for a known reason.

Ours and the official Python client run every scenario that they know, and the others a part, which CI has the time for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pytest

from pulsarium.conformance.run import Runner, Verdict
from pulsarium.conformance.scenarios import SCENARIOS
from pulsarium.conformance.side import our_brokers

pytestmark = pytest.mark.heavy


CLASSIC: Final = [each.name for each in SCENARIOS.values() if not each.subject.startswith("scalable.")]


@dataclass(frozen=True, eq=False)
class KnownClient:
    """A client: its adapter, the scenarios that it runs here, and those that it fails, with the reasons.

    rules: rules of the linter that the client may break by chance.
    """

    name: str
    adapter: Sequence[str]
    scenarios: Sequence[str]
    failures: Mapping[str, str] = field(default_factory=dict)
    rules: frozenset[str] = frozenset()


KNOWN: Final = (
    KnownClient("ours", ["ours"], list(SCENARIOS)),
    KnownClient("ours-asyncio", ["ours", "asyncio"], CLASSIC[::3]),
    KnownClient(
        "python",
        ["python"],
        CLASSIC,
        {"a-compacted-batch-has-the-newest-of-each-key": "shows removed messages as empty ones"},
        # Lookups and other requests of the C++ client count their ids apart, so that two of them may be equal.
        frozenset({"request-id-reused"}),
    ),
    KnownClient("websocket", ["websocket"], CLASSIC[1::3]),
)
CASES: Final = [
    pytest.param(client, client, name, id=f"{client.name}-{name}") for client in KNOWN for name in client.scenarios
]


@pytest.fixture(scope="module")
def runner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    client: KnownClient = request.param
    module, *arguments = client.adapter
    command = [sys.executable, "-P", "-m", f"pulsarium.conformance.adapters.{module}", *arguments]
    with our_brokers("5.0") as sides:
        runner = Runner(command, sides, "5.0", tmp_path_factory.mktemp(client.name))
        yield runner
        runner.stop()


@pytest.mark.parametrize(("runner", "client", "name"), CASES, indirect=["runner"])
def test_a_client_passes_a_scenario(runner: Runner, client: KnownClient, name: str) -> None:
    result = runner.play(SCENARIOS[name])
    if name in client.failures:
        assert result.verdict is Verdict.FAIL, "the client passes: take the scenario out of its failures"
    elif not client.rules.intersection(result.rules):
        assert result.verdict in (Verdict.PASS, Verdict.UNSUPPORTED), result.reason
    if client.name == "ours":
        assert result.verdict is Verdict.PASS, result.reason
