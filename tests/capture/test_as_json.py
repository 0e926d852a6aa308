"""Records as JSON, damaged ones included."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.capture.as_json import described, fields_of, shown
from pulsarium.capture.file import CaptureRecord, EventKind
from pulsarium.capture.lint.checker import Walk
from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, CommandProducer, MessageIdData
from tests.capture.lint.talk import Talk, encoded, entry


def told(talk: Talk, *, full: bool = False) -> list[dict[str, Any]]:
    walk = Walk()
    return [described(number, each, walk.feed(each)[1], full=full) for number, each in enumerate(talk.records)]


def test_a_frame_is_told_as_json_with_its_fields() -> None:
    talk = Talk(4)
    talk.produce()
    talk.send(0)
    *_, sent, receipt = told(talk)
    assert sent == {
        "number": 3,
        "connection": 4,
        "kind": "frame",
        "sender": "client",
        "time": "1970-01-01T00:00:00.004000Z",
        "monotonic_ns": 4_000_000,
        "size": talk.records[3].size,
        "command": "SEND",
        "topic": "persistent://public/default/t",
        "fields": {"producer_id": 1, "sequence_id": 0},
        "entry": {
            "size": len(entry()),
            "messages": 1,
            "checksum": True,
            "metadata": {"producer_name": "p", "sequence_id": 0, "publish_time": 1_700_000_000_000},
            "payload_size": 7,
        },
    }
    assert (receipt["latency_us"], receipt["fields"]["message_id"]) == (1000, {"ledgerId": 1, "entryId": 0})


def test_frames_of_drafts_are_marked() -> None:
    talk = Talk()
    talk.client("NEGATIVE_ACK", consumer_id=1, negative_acked=[MessageIdData(ledgerId=1, entryId=0)])
    talk.broker("CONNECTED", server_version="x", feature_flags={"supports_key_ordered_negative_ack": True})
    talk.broker("MESSAGE", entry(), consumer_id=1, message_id=(1, 0), message_permits=1)
    talk.broker("MESSAGE", entry(), consumer_id=1, message_id=(1, 0))
    assert [each.get("draft") for each in told(talk)[1:]] == [["PIP-493"], ["PIP-493"], ["PIP-491"], None]


def test_an_opening_and_a_close() -> None:
    talk = Talk()
    talk.close(reason="why not")
    opened, closed = told(talk)
    assert (opened["kind"], "note" in opened) == ("opened", False)
    assert (closed["kind"], closed["note"]) == ("closed", {"reason": "why not"})


def test_entries_that_are_cut_or_damaged() -> None:
    talk = Talk()
    data = encoded("SEND", entry(), producer_id=1, sequence_id=0)
    talk.raw(Direction.CLIENT, data[:-3], len(data))
    talk.raw(Direction.CLIENT, data[:-12], len(data))
    talk.raw(Direction.CLIENT, data[:-1] + b"!")
    cut, nothing, damaged = (each["entry"] for each in told(talk, full=True)[1:])
    assert (cut["payload_size"], cut["payload"], "checksum" in cut) == (7, "payl", False)
    assert "beyond" in nothing["broken"]
    assert damaged["checksum"] is False


def test_properties_are_an_object_unless_two_have_one_name() -> None:
    command = CommandProducer(topic="t", producer_id=1, request_id=1)
    command.metadata.add(key="a", value="1")
    assert fields_of(command)["metadata"] == {"a": "1"}
    command.metadata.add(key="a", value="2")
    assert fields_of(command)["metadata"] == [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"hello", "hello"),
        (b"", ""),
        (b"\x00\xff", "0x00ff"),
        (b"\x1b[31m", "0x1b5b33316d"),
        (b"a" * 70, f"{'a' * 64}... (70 bytes)"),
    ],
)
def test_bytes_are_shown_in_json(data: bytes, text: str) -> None:
    assert shown(data) == text


HEADS = st.binary(max_size=40) | st.sampled_from(
    [BaseCommand(type=spec.name).SerializeToString() for spec in COMMANDS.values()]
)


@given(st.lists(st.tuples(st.booleans(), HEADS, st.binary(max_size=60), st.integers(-(2**63), 2**63 - 1))))
def test_anything_can_be_said(frames: list[tuple[bool, bytes, bytes, int]]) -> None:
    walk = Walk()
    for number, (client, head, trailing, time) in enumerate(frames):
        data = frame(head, trailing)
        sender = Direction.CLIENT if client else Direction.BROKER
        record = CaptureRecord(EventKind.FRAME, 1, sender, time, time, data, len(data))
        line = described(number, record, walk.feed(record)[1], full=True)
        assert json.loads(json.dumps(line))["size"] == len(data)
