"""Rules judge damaged frames and impossible values without an error."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pulsarium.capture.file import CaptureRecord
from pulsarium.capture.lint.checker import Checker, finding_of
from pulsarium.capture.lint.shared import Shared
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.entry import build
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, MessageMetadata

from .planted import PLANTED, plant
from .talk import BROKER, CLIENT, Talk, encoded, entry

NUMBERS = [0, 1, 2, 3, 2**31 - 1, 2**32 - 1]
ENTRIES = [b"", entry(), entry(3), entry()[:9], b"\x0e\x02\0\0\0\x09"]
NOTES = [{}, {}, {}, {"fault": "1", "did": "dropped", "arrived": False}]


def feed(records: list[CaptureRecord]) -> None:
    shared = Shared()
    checkers: dict[int, Checker] = {}
    for record in records:
        checker = checkers.setdefault(record.connection, Checker(shared))
        for violation in checker.feed(record).violations:
            assert str(finding_of(violation, checker.conversation)).isprintable()
    for checker in checkers.values():
        checker.end()


def _value(described: Any, random: Random) -> Any:
    if described.message_type is not None:
        return _message(described.message_type, random)
    if described.enum_type is not None:
        return random.choice(described.enum_type.values).number
    if described.cpp_type == described.CPPTYPE_STRING:
        text = random.choice(["", "t", "persistent://public/default/t", "x" * 400])
        return text.encode() if described.type == described.TYPE_BYTES else text
    if described.cpp_type == described.CPPTYPE_BOOL:
        return random.random() < 0.5
    number = random.choice(NUMBERS)
    return number if described.cpp_type != described.CPPTYPE_INT32 else min(number, 2**31 - 1)


def _message(descriptor: Any, random: Random) -> dict[str, Any]:
    said = {}
    for described in descriptor.fields:
        if described.is_required or random.random() < 0.4:
            value = _value(described, random)
            said[described.name] = [value] if described.is_repeated else value
    return said


def _frame(random: Random) -> bytes:
    """Return the frame of a command with random fields, or random bytes."""
    if random.random() < 0.1:
        return random.randbytes(random.randrange(30))
    spec = random.choice(list(COMMANDS.values()))
    fields = _message(BaseCommand.DESCRIPTOR.fields_by_name[spec.field].message_type, random)
    command = BaseCommand(type=spec.name, **{spec.field: fields})
    return frame(command.SerializePartialToString(), random.choice(ENTRIES))


@given(st.integers(0, 2**64))
def test_frames_with_anything_in_them(seed: int) -> None:
    random = Random(seed)  # hypothesis draws too slowly for so many values
    talk = Talk()
    talk.greet()
    talk.produce()
    talk.subscribe()
    for _ in range(30):
        talk.raw(random.choice([CLIENT, BROKER]), _frame(random))
        talk.records[-1] = replace(talk.records[-1], note=random.choice(NOTES))
    talk.close(after_ms=2000)
    feed(talk.records)


@given(st.lists(st.sampled_from(list(PLANTED)), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_damaged_frames_raise_nothing(names: list[str], random: Any) -> None:
    records = [record for at, name in enumerate(names) for record in plant(name, Talk(at)).records]
    random.shuffle(records)
    for at, record in enumerate(records):
        if record.data and random.random() < 0.5:
            data = bytearray(record.data)
            data[random.randrange(len(data))] = random.randrange(256)
            records[at] = replace(record, data=bytes(data))
    feed(records)


def test_sizes_that_nobody_has() -> None:
    """The batch claims two thousand million messages, and the client acknowledges that batch."""
    talk = Talk()
    talk.greet()
    talk.subscribe()
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, num_messages_in_batch=2**31 - 1)
    talk.broker("MESSAGE", build(metadata, b""), consumer_id=1, message_id=(1, 0))
    talk.raw(CLIENT, encoded("ACK", consumer_id=1, ack_type=0, message_id=[(1, 0)]))
    feed(talk.records)
