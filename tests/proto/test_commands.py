"""The registry of commands against the descriptor, and what the parser lets through."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.conformance.recordings.releases import PULSAR_4
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction, parse, parse_plain_send
from pulsarium.proto.errors import CommandError
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, CommandSend, FeatureFlags, ProtocolVersion
from tests.proto.golden import golden_frames

specs = pytest.mark.parametrize("spec", COMMANDS.values(), ids=lambda spec: spec.name)


def test_every_type_is_registered() -> None:
    assert {spec.name: number for number, spec in COMMANDS.items()} == dict(BaseCommand.Type.items())
    assert list(COMMANDS) == sorted(COMMANDS)


def test_every_body_belongs_to_a_type() -> None:
    fields = [field.name for field in BaseCommand.DESCRIPTOR.fields if field.name != "type"]
    assert sorted(spec.field for spec in COMMANDS.values()) == sorted(fields)


@specs
def test_each_declared_command_fits_the_proto_file(spec: CommandSpec) -> None:
    field = BaseCommand.DESCRIPTOR.fields_by_name[spec.field]
    assert field.number == spec.type
    # SEND_RECEIPT has the field send_receipt, WATCH_TOPIC_LIST watchTopicList. Three fields are longer than the type.
    longer = {"lookup": "lookuptopic", "lookupresponse": "lookuptopicresponse"}
    squeezed = spec.name.replace("_", "").lower().replace("partitionedmetadata", "partitionmetadata")
    assert spec.field.replace("_", "").lower() == longer.get(squeezed, squeezed)
    assert spec.since in ProtocolVersion.values()
    assert spec.feature_flag is None or spec.feature_flag in FeatureFlags.DESCRIPTOR.fields_by_name
    if spec.reply is not None:
        reply = COMMANDS[spec.reply]
        assert {spec.direction, reply.direction} == {Direction.CLIENT, Direction.BROKER} or Direction.BOTH in (
            spec.direction,
            reply.direction,
        )
    if spec.field.endswith("Response"):
        assert [asked for asked in COMMANDS.values() if asked.reply == spec.type], "no request has this reply"


def test_the_registry_has_the_fields_of_send() -> None:
    send = COMMANDS[BaseCommand.SEND]
    assert send == CommandSpec(6, "SEND", "send", Direction.CLIENT, 0, None, BaseCommand.SEND_RECEIPT, "producer")
    both = [spec.name for spec in COMMANDS.values() if spec.direction is Direction.BOTH]
    assert both == ["CLOSE_PRODUCER", "CLOSE_CONSUMER", "PING", "PONG"]
    assert COMMANDS[BaseCommand.AUTH_RESPONSE].direction is Direction.CLIENT
    assert COMMANDS[BaseCommand.END_TXN_ON_SUBSCRIPTION].direction is Direction.CLIENT
    assert COMMANDS[BaseCommand.SCALABLE_TOPIC_LOOKUP].feature_flag == "supports_scalable_topics"
    assert COMMANDS[BaseCommand.WATCH_TOPIC_UPDATE].feature_flag == "supports_topic_watchers"
    assert COMMANDS[BaseCommand.WATCH_TC_ASSIGNMENTS].feature_flag == "supports_tc_metadata_discovery"
    assert {spec.family for spec in COMMANDS.values()} == {
        "connection", "lookup", "producer", "consumer", "schema", "transaction", "watch", "scalable",
    }  # fmt: skip


def test_protocol_version_22() -> None:
    """The draft of PIP-429 adds version 22."""
    assert max(ProtocolVersion.values()) == ProtocolVersion.Value("v22") == 22
    assert ProtocolVersion.values() == list(range(23))


@specs
def test_a_command_without_its_body_is_refused(spec: CommandSpec) -> None:
    raw = b"\x08" + bytes([spec.type])
    with pytest.raises(CommandError, match=f"^{spec.name} without its body$"):
        parse(raw, BaseCommand())


@specs
def test_each_required_field_is_required(spec: CommandSpec) -> None:
    command = BaseCommand.FromString(b"\x08" + bytes([spec.type]))
    body = getattr(command, spec.field)
    body.SetInParent()
    raw = command.SerializePartialToString()
    required = [field.name for field in body.DESCRIPTOR.fields if field.is_required]
    if required:
        with pytest.raises(CommandError, match=f"missing required fields: .*{spec.field}.{required[0]}"):
            parse(raw, BaseCommand())
    else:
        assert parse(raw, BaseCommand()) is spec


# Transcripts 009, 010 and 014: a released broker closed the connection.
@pytest.mark.parametrize(
    "data",
    [
        "08c801", "0800", "0801", "0845", "0831", "0846b20400", "084ce20400",
        "0badf00d", "0817ba01030a0174", "0817ba01021001", "0817", "0812", "ba01050a01741001",
        "08042209120173180020002801", "080a52020801", "", "0804220b0a017412017318092000",
        "052a2c0a2870657273697374656e743a2f2f74722f6d697373696e672d7265",
        # bodies of another type, which a released broker refused too
        "0812920100ba0100", "0812920100ba01030a0174", "0802", "0812ba01050a01741001",
    ],
)  # fmt: skip
def test_a_malformed_command_is_refused(data: str) -> None:
    with pytest.raises(CommandError):
        parse(bytes.fromhex(data), BaseCommand())


@pytest.mark.parametrize(
    "data",
    ["0812920100", "9201000812", "08120812920100", "08170812920100", "0812920103980601", "0812920100ba3e0178"],
)
def test_odd_pings_are_pings(data: str) -> None:
    """Any order, a repeated type, unknown fields: a released broker answered each with PONG."""
    assert parse(bytes.fromhex(data), BaseCommand()).name == "PING"


def test_a_field_may_run_into_what_trails() -> None:
    """A released broker answered with PONG although the command's size was one byte short (transcript 010)."""
    [(command, trailing)] = FrameDecoder().feed(bytes.fromhex("0000000b000000040812920100616263"[:30]))
    assert (command.hex(), trailing.hex()) == ("08129201", "006162")
    assert parse(command, BaseCommand(), trailing).name == "PING"
    for behind in (b"", b"\xff" * 1000):
        with pytest.raises(CommandError, match=r"^not a command$"):
            parse(command, BaseCommand(), behind)


def test_reused_message_forgets() -> None:
    command = BaseCommand()
    for golden in (*golden_frames(), *reversed(golden_frames())):
        [(raw, _)] = FrameDecoder().feed(golden.frame)
        spec = parse(raw, command)
        assert [field.name for field, _ in command.ListFields()] == ["type", spec.field]
        assert command.SerializeToString() == raw


def test_every_recorded_frame() -> None:
    """Commands of all transcripts are the same bytes after they are parsed and serialized."""
    command, count = BaseCommand(), 0
    for path in sorted(PULSAR_4.folder.glob("*.jsonl")):
        for record in map(json.loads, path.read_text().splitlines()):
            if record.get("dir") != "b2c" or "raw" not in record:
                continue
            data = bytes.fromhex(record["raw"])
            [(raw, trailing)] = FrameDecoder().feed(data)
            assert parse(raw, command).name == record["type"]
            assert frame(command.SerializeToString(), trailing) == data
            count += 1
    assert count > 3000


IDS = st.integers(0, 2**64 - 1)
RARE = {"num_messages": st.integers(-(2**31), 2**31 - 1), "highest_sequence_id": IDS, "is_chunk": st.booleans()}


@given(IDS, IDS, st.fixed_dictionaries({}, optional=RARE))
def test_a_plain_send_is_parsed_as_any_other(producer_id: int, sequence_id: int, rest: dict[str, int]) -> None:
    send = CommandSend(producer_id=producer_id, sequence_id=sequence_id, **rest)  # type: ignore[arg-type]
    command = BaseCommand(type=BaseCommand.SEND, send=send).SerializeToString()
    found = CommandSend()
    is_plain = parse_plain_send(command, found)
    is_short = max(producer_id, sequence_id, send.highest_sequence_id) < 2**63 and send.num_messages >= 0
    assert is_plain == (is_short and "is_chunk" not in rest)
    assert not is_plain or found == send


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x08\x06",
        b"\x08\x06\x32\x02\x08\x00",  # no sequence id
        b"\x08\x06\x32\x04\x08\x00\x10",  # cut off
        b"\x08\x06\x32\x04\x08\x00\x10\x80",
        b"\x08\x06\x32\x03\x08\x00\x10\x00",  # the body ends inside a field
        b"\x08\x06\x32\x05\x08\x00\x10\x00",  # the body is longer than the command
        b"\x08\x06\x32\x04\x10\x00\x08\x00",  # the fields are in another order
        b"\x08\x06\x32\x04\x08\x00\x10\x00\x0a",
        b"\x08\x07\x32\x04\x08\x00\x10\x00",  # SEND_RECEIPT
    ],
)
def test_other_commands_are_no_plain_sends(data: bytes) -> None:
    assert not parse_plain_send(data, CommandSend())
