"""Commands that a client takes unasked, by its protocol version and its feature flags."""

from __future__ import annotations

import pytest

from pulsarium.broker.session.capabilities import Capabilities
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Type


def of(version: int, *flags: str, exposing: bool = False) -> Capabilities:
    connect = pb.CommandConnect(client_version="x", protocol_version=version)
    for flag in flags:
        setattr(connect.feature_flags, flag, True)
    return Capabilities.of(connect, exposing_broker_metadata=exposing)


@pytest.mark.req("W-10")
@pytest.mark.parametrize(
    ("type", "since"),
    [(Type.PING, 1), (Type.REACHED_END_OF_TOPIC, 9), (Type.ACTIVE_CONSUMER_CHANGE, 12), (Type.TOPIC_MIGRATED, 20)],
)
def test_commands_since_a_version(type: int, since: int) -> None:
    assert not of(since - 1).takes(type)
    assert of(since).takes(type)
    assert of(99).takes(type)


@pytest.mark.req("W-09", "W-10")
def test_commands_behind_a_flag() -> None:
    behind = [spec for spec in COMMANDS.values() if spec.feature_flag is not None]
    assert behind
    for spec in behind:
        assert spec.feature_flag is not None
        assert not of(22).takes(spec.type)
        assert of(22, spec.feature_flag).takes(spec.type)


@pytest.mark.req("W-03")
@pytest.mark.req("S415-30")
@pytest.mark.parametrize(
    ("version", "flag", "exposing", "exposes"),
    [(18, True, True, True), (17, True, True, False), (18, False, True, False), (18, True, False, False)],
)
def test_the_brokers_metadata_wants_version_flag_and_configuration(
    version: int, flag: bool, exposing: bool, exposes: bool
) -> None:
    flags = ["supports_broker_entry_metadata"] if flag else []
    assert of(version, *flags, exposing=exposing).exposes_broker_metadata is exposes


@pytest.mark.req("W-04")
def test_checksums_and_batches() -> None:
    assert [of(version).takes_checksums for version in (10, 11)] == [False, True]
    assert [of(version).takes_batches for version in (3, 4)] == [False, True]


def test_a_flag_that_is_false_is_not_there() -> None:
    connect = pb.CommandConnect(client_version="x")
    connect.feature_flags.supports_auth_refresh = False
    assert Capabilities.of(connect, exposing_broker_metadata=False).flags == frozenset()
