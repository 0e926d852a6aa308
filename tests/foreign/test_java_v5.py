"""The official V5 client of Pulsar 5, with the usual work of applications on scalable topics."""

from __future__ import annotations

import subprocess

import pytest

from .broker_process import COMMAND, BrokerProcess, given_address
from .toolchains import V5, java_command, require

SECONDS = 600

pytestmark = [pytest.mark.timeout(SECONDS + 60), pytest.mark.heavy]

CASES = (
    "a stream",
    "a queue",
    "a checkpoint",
    "a group of checkpoint consumers",
    "a split under a stream",
    "a split and a merge under a queue",
    "two stream consumers",
    "a stream consumer that comes back",
    "a stream consumer of a namespace",
    "a transaction that commits",
    "a transaction that aborts",
    "a persistent topic",
    "a migration under a queue",
    "an absent topic",
    "stats and deletion",
)
NOT_CREATED = (
    "org.apache.pulsar.client.api.PulsarClientException: Scalable topic lookup failed: TopicNotFound - "
    "Scalable topic not found: topic://public/v5/absent"
)
"""The failure for an absent topic, as on a real 5.0.0-M1, where a lookup creates no topic."""


@pytest.fixture(scope="module", params=["pulsar-5.0", "pulsar-5.0-m1"])
def profile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def failures(profile: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run the program once, on a broker of its own, and return the failure of each case, or ""."""
    require(V5)
    if given_address() is not None:
        pytest.skip(f"needs a broker of its own: {COMMAND} can start it")
    process = BrokerProcess(tmp_path_factory.mktemp(profile), ["--profile", profile])
    try:
        return run(process)
    finally:
        process.kill()


def run(process: BrokerProcess) -> dict[str, str]:
    address = process.address
    done = subprocess.run(
        [*java_command(V5, "pulsarium.v5.Main"), address.service_url, address.admin_url],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(line.split("\t") for line in done.stdout.splitlines())


@pytest.mark.parametrize("case", CASES)
def test_the_v5_client_does(case: str, profile: str, failures: dict[str, str]) -> None:
    expected = NOT_CREATED if (case, profile) == ("an absent topic", "pulsar-5.0-m1") else ""
    assert failures[case] == expected


def test_every_case_ran(failures: dict[str, str]) -> None:
    assert tuple(failures) == CASES
