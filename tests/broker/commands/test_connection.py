"""CONNECT, PING, PONG, and what closes a connection."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.commands.connection import OUR_CLIENTS
from pulsarium.broker.config import PULSAR_4_2, Config
from pulsarium.broker.config.profile import profile_of
from pulsarium.broker.session.session import sessions_of
from pulsarium.client.connection.protocol import CLIENT_VERSION
from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import TOPIC, Bed, Type, Wire, frame_of, plain, serving
from yardsticks.bench.minimal import minimal_command


def name_of(type: int) -> str:
    return COMMANDS[type].name


ALL_FLAGS = [field.name for field in pb.FeatureFlags.DESCRIPTOR.fields]


@pytest.mark.req("W-07", "W-09")
@pytest.mark.parametrize(("client", "announced"), [(0, 0), (12, 12), (20, 20), (21, 21), (22, 22), (30, 22), (-1, -1)])
async def test_the_lower_version_is_agreed_on(bed: Bed, client: int, announced: int) -> None:
    wire = bed.dial()
    connected = await wire.connect(client)
    assert connected.protocol_version == announced
    (session,) = sessions_of(bed.broker)
    assert session.capabilities.version == client  # the client's own version decides what it is sent


def said_of_last_entries(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in (record.getMessage() for record in caplog.records) if "PIP-429" in text]


async def test_the_first_client_of_version_22_that_is_not_ours_is_named(
    bed: Bed, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    assert CLIENT_VERSION.startswith(OUR_CLIENTS)
    await bed.connect(22, client_version=CLIENT_VERSION)
    await bed.connect(21, client_version="Pulsar-CPP-v4")
    assert said_of_last_entries(caplog) == []
    await bed.connect(22, client_version="Pulsar-CPP-v5")
    await bed.connect(23, client_version="Pulsar-Go-v9")
    (said,) = said_of_last_entries(caplog)
    assert 'for_all="--max-protocol-version 21"' in said
    assert "pulsarium mask add --client-version 'Pulsar-CPP-v5' --max-protocol-version 21" in said


async def test_no_client_is_named_where_version_22_is_not_spoken(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with serving(profile=profile_of("pip", 21)) as bed:
        await bed.connect(22, client_version="Pulsar-CPP-v5")
        assert said_of_last_entries(caplog) == []


@pytest.mark.req("W-07")
async def test_a_client_without_a_version_is_of_version_0(bed: Bed) -> None:
    wire = bed.dial()
    await wire.send(Type.CONNECT, client_version="old")
    connected = await wire.expect(Type.CONNECTED)
    assert connected.HasField("protocol_version")
    assert connected.protocol_version == 0


@pytest.mark.req("W-07")
@pytest.mark.serving(profile=PULSAR_4_2)
async def test_the_profile_of_a_release_has_its_version(bed: Bed) -> None:
    connected = await bed.dial().connect(22)
    assert (connected.server_version, connected.protocol_version) == ("Pulsar Server4.2.4", 21)


@pytest.mark.req("W-05", "W-08", "W-09")
@pytest.mark.parametrize("flags", [[], ["supports_auth_refresh", "supports_broker_entry_metadata"], ALL_FLAGS])
async def test_connected_does_not_depend_on_the_flags(bed: Bed, flags: list[str]) -> None:
    connected = await bed.dial().connect(flags=flags)
    assert connected.max_message_size == 5 * 1024 * 1024
    assert {field.name for field, value in connected.feature_flags.ListFields() if value} == {
        "supports_topic_watchers",
        "supports_get_partitioned_metadata_without_auto_creation",
        "supports_repl_dedup_by_lid_and_eid",
        "supports_topic_watcher_reconcile",
        "supports_scalable_topics",
        "supports_tc_metadata_discovery",
    }


@pytest.mark.req("W-05", "W-08")
@pytest.mark.serving(Config(maxMessageSize=1000, enableBrokerTopicListWatcher=False))
async def test_connected_follows_the_configuration(bed: Bed) -> None:
    connected = await bed.dial().connect()
    assert connected.max_message_size == 1000
    assert not connected.feature_flags.supports_topic_watchers
    assert not connected.feature_flags.supports_topic_watcher_reconcile


@pytest.mark.parametrize(
    ("key", "flag"),
    [
        ("scalableTopicsEnabled", "supports_scalable_topics"),
        ("transactionCoordinatorScalableTopicsEnabled", "supports_tc_metadata_discovery"),
    ],
)
async def test_a_broker_without_scalable_topics_denies_them(autojump_clock: object, key: str, flag: str) -> None:
    off: dict[str, Any] = {key: False}
    async with serving(Config(**off)) as bed:
        assert not getattr((await bed.dial().connect()).feature_flags, flag)


@pytest.mark.req("W-06")
async def test_ping_and_pong_are_taken_before_connect(bed: Bed) -> None:
    wire = bed.dial()
    await wire.send(Type.PONG)
    await wire.alive()
    await wire.connect()
    await wire.alive()


NEEDS_CONNECT = [
    spec.type for spec in COMMANDS.values() if spec.type not in (Type.CONNECT, Type.PING, Type.PONG, Type.AUTH_RESPONSE)
]


@pytest.mark.req("W-06")
@pytest.mark.parametrize("type", NEEDS_CONNECT, ids=name_of)
async def test_no_other_command_is_taken_before_connect(bed: Bed, type: int, caplog: pytest.LogCaptureFixture) -> None:
    wire = bed.dial()
    await wire.write(frame(minimal_command(type).SerializeToString()))
    assert await wire.closed() == []
    assert COMMANDS[type].name in caplog.text
    assert sessions_of(bed.broker) == set()


@pytest.mark.req("W-06")
async def test_a_second_connect_closes(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    await wire.send(Type.CONNECT, client_version="again", protocol_version=21)
    assert await wire.closed() == []
    assert "a second CONNECT" in caplog.text


SERVER_ONLY = [spec.type for spec in COMMANDS.values() if spec.direction is Direction.BROKER]


@pytest.mark.req("W-06")
@pytest.mark.parametrize("type", SERVER_ONLY, ids=name_of)
async def test_commands_of_brokers_close(wire: Wire, type: int, caplog: pytest.LogCaptureFixture) -> None:
    await wire.write(frame(minimal_command(type).SerializeToString()))
    assert await wire.closed() == []
    assert COMMANDS[type].name in caplog.text


@pytest.mark.req("W-06", "W-11")
@pytest.mark.parametrize("connected", [False, True])
async def test_an_answer_to_no_challenge_closes(bed: Bed, connected: bool) -> None:
    for content in (False, True):
        wire = bed.dial()
        if connected:
            await wire.connect()
        response = {"auth_method_name": "token", "auth_data": b"x"}
        fields: dict[str, Any] = {"response": response} if content else {}
        await wire.send(Type.AUTH_RESPONSE, **fields)
        answers = [received.command.error for received in await wire.closed()]
        assert len(answers) == content
        for error in answers:
            assert (error.request_id, error.error) == (2**64 - 1, pb.AuthenticationError)
            assert error.message == "Failed to authenticate"


@pytest.mark.req("W-10")
@pytest.mark.parametrize("number", [0, 1, 49, 69, 82, 200])
async def test_unknown_commands_close(wire: Wire, number: int, caplog: pytest.LogCaptureFixture) -> None:
    await wire.write(frame(bytes([8, number % 128, 1] if number > 127 else [8, number])))
    assert await wire.closed() == []
    assert "closing connection" in caplog.text


@pytest.mark.req("W-01", "W-10")
@pytest.mark.parametrize(
    "command",
    [
        b"",
        b"\xff\xff",
        bytes([8, Type.PING]),  # no body
        pb.BaseCommand(type=Type.PING, pong=pb.CommandPong()).SerializeToString(),  # the body of another command
        pb.BaseCommand(type=Type.LOOKUP, lookupTopic={"request_id": 1}).SerializePartialToString(),  # no topic
    ],
)
async def test_broken_commands_close(wire: Wire, command: bytes) -> None:
    await wire.write(frame(command))
    assert await wire.closed() == []


@pytest.mark.req("W-01")
async def test_bytes_behind_a_simple_command_are_ignored(wire: Wire) -> None:
    await wire.send(Type.PING, b"whatever this is")
    await wire.expect(Type.PONG)
    await wire.alive()


@pytest.mark.req("W-01")
async def test_frames_may_come_byte_by_byte_or_all_at_once(bed: Bed) -> None:
    wire = bed.dial()
    for byte in frame_of(Type.CONNECT, client_version="slow", protocol_version=21):
        await wire.write(bytes([byte]))
    await wire.expect(Type.CONNECTED)
    await wire.write(frame_of(Type.PING) * 3)
    for _ in range(3):
        await wire.expect(Type.PONG)


@pytest.mark.req("W-05")
async def test_the_largest_frame_is_taken(wire: Wire) -> None:
    limit = 5 * 1024 * 1024 + 10 * 1024
    await wire.producer()
    spare = limit - len(wire.sends(plain(b"")))
    wire.sequences[0] = 0
    for size in (spare - 20, spare - 10):  # over max_message_size, but legal frames
        await wire.publish(plain(bytes(size)))
    assert spare - 20 > 5 * 1024 * 1024


@pytest.mark.req("W-05")
async def test_a_larger_frame_closes_as_soon_as_it_is_announced(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    await wire.write((5_253_117).to_bytes(4, "big"))
    assert await wire.closed() == []
    assert "frame of 5253117 bytes" in caplog.text


@pytest.mark.req("W-05")
@pytest.mark.serving(Config(maxMessageSize=1000))
async def test_the_frame_limit_follows_the_message_limit(wire: Wire) -> None:
    await wire.producer()
    await wire.publish(plain(bytes(11_000)))
    await wire.write((1000 + 10 * 1024 - 3).to_bytes(4, "big"))
    await wire.closed()


@pytest.mark.req("W-06")
async def test_a_broken_connection_leaves_the_others_alone(bed: Bed, wire: Wire) -> None:
    broken = await bed.connect()
    await wire.producer(TOPIC)
    await broken.write(b"GET / HTTP/1.1\r\n\r\n")
    await broken.closed()
    await wire.publish(plain(b"still here"))


async def test_a_client_that_leaves_is_forgotten(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe()
    await wire.aclose()
    other = await bed.connect()
    await other.subscribe()  # the Exclusive subscription is free again
    assert len(sessions_of(bed.broker)) == 1


@pytest.mark.req("W-01")
async def test_an_answer_before_a_broken_frame_still_arrives(wire: Wire) -> None:
    await wire.write(frame_of(Type.PING) + b"\xff\xff\xff\xff")
    assert [received.command.type for received in await wire.closed()] == [Type.PONG]
