"""Official clients that reach brokers through the proxy get the verdicts that they get without it.

`pulsarium conformance client --through-proxy` runs all scenarios in this way.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pulsarium.broker.lab.proxy import connection
from pulsarium.conformance import scenario as stage
from pulsarium.conformance.run import Runner, Verdict
from pulsarium.conformance.scenarios import SCENARIOS
from pulsarium.conformance.side import our_brokers
from pulsarium.proto.commands import Direction
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.foreign.kit import ready

PASSED = (
    "messages-arrive-in-order",
    "topics-are-found-from-either-broker",
    "a-large-message-travels-in-chunks",
    "a-cumulative-acknowledgement-covers-all-before",
    "clients-go-on-after-an-unload",
    "a-client-connects-over-tls",
    "a-token-is-accepted",
)
BY_CHANCE = frozenset({"request-id-reused", "sequence-goes-back"})
"""Rules that the Python client may break, as in test_clients."""


@pytest.fixture(scope="module")
def runner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    release = ready(request.param)
    with our_brokers("pulsar-5.0", proxied=True) as sides:
        folder = tmp_path_factory.mktemp("proxied")
        runner = Runner(release.command, sides, "pulsar-5.0", folder, release.environment)
        yield runner
        runner.stop()


@pytest.mark.parametrize("runner", ["python", "go"], indirect=True)
@pytest.mark.parametrize("name", PASSED)
def test_a_client_passes_a_scenario_through_the_proxy(runner: Runner, name: str) -> None:
    result = runner.play(SCENARIOS[name])
    if not (result.rules and BY_CHANCE.issuperset(result.rules)):
        assert result.verdict is Verdict.PASS, result.reason


@pytest.mark.parametrize("runner", ["python"], indirect=True)
def test_a_proxy_that_swallows_messages_is_found(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    pass_on = connection.ProxiedConnection._passed

    def swallow(self: connection.ProxiedConnection, sender: Direction, data: bytes) -> list[bytes]:
        frames = FrameDecoder().feed(data)
        whole = sum(8 + len(head) + len(trailing) for head, trailing in frames)
        kept = [frame(*each) for each in frames if each[0][1] != pb.BaseCommand.MESSAGE]
        return pass_on(self, sender, b"".join([*kept, data[whole:]]))

    monkeypatch.setattr(connection.ProxiedConnection, "_passed", swallow)
    monkeypatch.setattr(stage, "PATIENCE", 2.0)
    result = runner.play(SCENARIOS["messages-arrive-in-order"])
    assert result.verdict is Verdict.FAIL, result.reason
