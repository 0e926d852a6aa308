"""Profiles, and the server version that the broker tells clients."""

from __future__ import annotations

import importlib.metadata
from itertools import pairwise

import pytest

from pulsarium.broker.config import PIP, PROFILES, PULSAR_4_2, Profile, ServeOptions
from pulsarium.broker.config.version import VERSION
from pulsarium.proto.generated import PulsarApi_pb2 as pb


def test_profiles_are_found_by_name() -> None:
    assert all(name == profile.name for name, profile in PROFILES.items())
    assert (PROFILES["pip"], PROFILES["pulsar-4.2"]) == (PIP, PULSAR_4_2)
    assert {name: profile.max_protocol_version for name, profile in PROFILES.items()} == {
        "pip": 22,
        "pulsar-5.0": 21,
        "pulsar-5.0-m1": 21,
        "pulsar-4.2": 21,
        "pulsar-4.1": 21,
        "pulsar-4.0": 21,
        "pulsar-3.0": 21,
        "pulsar-2.11": 19,
        "pulsar-2.10": 19,
        "pulsar-2.8": 17,
    }


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
def test_flags_and_commands_of_a_profile_are_the_protocols(profile: Profile) -> None:
    assert profile.flags <= {field.name for field in pb.FeatureFlags.DESCRIPTOR.fields}
    assert profile.unknown <= set(pb.BaseCommand.Type.keys())


def test_later_profiles_have_all_abilities_of_earlier_ones() -> None:
    newest_first = list(PROFILES.values())
    for later, earlier in pairwise(newest_first):
        assert later.max_protocol_version >= earlier.max_protocol_version
        assert later.flags >= earlier.flags
        assert later.unknown <= earlier.unknown


def test_the_released_broker_calls_itself_so() -> None:
    assert PULSAR_4_2.server_version == "Pulsar Server4.2.4"


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
def test_every_profile_has_a_server_version(profile: object) -> None:
    # The C++ client closes the connection when CONNECTED has no server version.
    assert getattr(profile, "server_version", "")


@pytest.mark.parametrize(
    ("client_version", "told"),
    [("Pulsar-CPP-v4.2.0", False), ("Pulsar Go 0.16.0", False), ("Pulsar-Java-v4.2.4", True), ("", True)],
)
def test_end_of_topic_spares_clients_that_it_would_close(client_version: str, told: bool) -> None:
    assert PIP.tells_end_of_topic(client_version) is told
    assert PULSAR_4_2.tells_end_of_topic(client_version)


def test_the_version_is_that_of_the_package() -> None:
    assert importlib.metadata.version("pulsarium") == VERSION


def test_a_run_with_nothing_asked_for() -> None:
    options = ServeOptions()
    assert (options.host, options.port, options.http_port) == ("127.0.0.1", 6650, 8080)
    assert options.profile is PIP
    assert options.data is None
