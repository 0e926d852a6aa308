"""Change inputs at random: bytes, numbers, texts, and protobuf messages by their descriptors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from pulsarium.proto.generated import PulsarApi_pb2 as pb

TOPICS = (
    "persistent://public/default/t",
    "persistent://public/default/t",
    "t",
    "persistent://public/default/u",
    "non-persistent://public/default/n",
    "persistent://public/default/parted",
    "persistent://public/default/parted-partition-0",
    "persistent://public/default/parted-partition-7",
    "persistent://public/default/-partition-0",
    "persistent://public/default/__change_events",
    "persistent://public/default/t-multiTopicsReader-1",
    "persistent://public/default/s__transaction_pending_ack",
    "persistent://pulsar/system/transaction_coordinator_assign-partition-0",
    "persistent://pulsar/system/__transaction_log_0",
    "persistent://nobody/nowhere/t",
    "persistent://public/standalone/default/t",
    "persistent://public/default/a/b",
    "persistent://",
    "topic://public/default/t",
    "public/default",
    "",
    "/",
    "é€\U0001f600",
    "x" * 3000,
)
TEXTS = (
    *TOPICS,
    "s",
    "s",
    "p",
    "c",
    "k",
    "a,b",
    ".*",
    "(",
    "a{99999}",
    "%2F",
    "\0",
    "__compaction",
    "pulsar.dedup",
    "-1",
)
BYTES = (
    b"",
    b"\0",
    b"k",
    b"\xff" * 8,
    b"[]",
    b"{}",
    b'{"type":"record","name":"r","fields":[]}',
    b"\x0e\x01",
    b"x" * 2000,
)
SMALL = (0, 0, 1, 1, 2, 3, 5)
LARGE = (
    7,
    63,
    64,
    65,
    100,
    1000,
    1001,
    65_535,
    65_536,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
    -1,
    -2,
)
DEEPEST = 3

Field = FieldDescriptor
_BITS = {
    Field.CPPTYPE_INT32: (32, True),
    Field.CPPTYPE_INT64: (64, True),
    Field.CPPTYPE_UINT32: (32, False),
    Field.CPPTYPE_UINT64: (64, False),
}


def any_bytes(data: bytes, random: Random) -> bytes:
    """Return the bytes with one small change."""
    at = random.randint(0, len(data))
    some = random.choice((1, 1, 2, 4, 8, 64))
    match random.randrange(6):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + data[at + some :]
        case 2:
            return data[:at] + random.choice((random.randbytes(some), *BYTES)) + data[at:]
        case 3:
            return data[:at] + data[max(0, at - some) : at] + data[at:]
        case 4:
            return data[:at] + (number(random, 32, signed=False)).to_bytes(4, "big") + data[at + 4 :]
    if not data:
        return b"\0"
    at = min(at, len(data) - 1)
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def spoiled(data: bytes, random: Random) -> bytes:
    """Return a serialized message in which a text is most likely no longer valid UTF-8."""
    letters = [at for at, byte in enumerate(data) if byte > 96]
    at = random.choice(letters or [0])
    return data[:at] + random.choice((b"\xff", b"\0", b"\xed")) + data[at + 1 :]


def number(random: Random, bits: int, *, signed: bool) -> int:
    """Return a number of `bits` bits, mostly a small one, and otherwise one that is likely to be a limit somewhere."""
    value: int = random.choice(SMALL if random.random() < 0.6 else LARGE) % 2**bits
    return value - 2**bits if signed and value >> (bits - 1) else value


def list_of(items: Sequence[Any], others: Sequence[Any], random: Random, change: Callable[[Any], Any]) -> list[Any]:
    """Return a list with one change: items are taken from `others`, deleted, repeated, moved or changed."""
    made = list(items)
    at = random.randint(0, len(made))
    kind = random.random()
    if not made or kind < 0.15:
        made[at:at] = [random.choice(others)] if others else []
    elif kind < 0.25:
        first = random.randrange(len(others)) if others else 0
        made[at:at] = others[first : first + random.randint(1, 5)]
    elif kind < 0.35:
        del made[at : at + random.choice((1, 1, 3))]
    elif kind < 0.42:
        made[at:at] = [random.choice(made)]
    elif kind < 0.5:
        made.insert(at, made.pop(random.randrange(len(made))))
    else:
        at = min(at, len(made) - 1)
        made[at] = change(made[at])
    return made


def message(found: Message, random: Random, depth: int = 0) -> None:
    """Change one field of a message, or of a message inside it."""
    inner = [
        value
        for field, values in found.ListFields()
        if field.cpp_type == Field.CPPTYPE_MESSAGE
        for value in (values if field.is_repeated else [values])
    ]
    if inner and random.random() < 0.6:
        message(random.choice(inner), random, depth + 1)
        return
    if not found.DESCRIPTOR.fields:
        return
    present = [field for field, _ in found.ListFields()]
    field: Any = random.choice(present if present and random.random() < 0.5 else found.DESCRIPTOR.fields)
    if random.random() < 0.1:
        found.ClearField(field.name)
    elif field.is_repeated:
        _several(found, field, random, depth)
    elif field.cpp_type == Field.CPPTYPE_MESSAGE:
        inside = getattr(found, field.name)
        inside.SetInParent()
        fill(inside, random, depth + 1)
    else:
        setattr(found, field.name, _value(field, random))


def fill(made: Message, random: Random, depth: int = 0) -> None:
    """Set the required fields of a message, and a few of the optional ones."""
    field: Any
    for field in made.DESCRIPTOR.fields:
        if not field.is_required and random.random() < 0.75:
            continue
        if field.is_repeated:
            _several(made, field, random, depth)
        elif field.cpp_type != Field.CPPTYPE_MESSAGE:
            setattr(made, field.name, _value(field, random))
        elif depth < DEEPEST:
            inside = getattr(made, field.name)
            inside.SetInParent()
            fill(inside, random, depth + 1)


def _several(found: Message, field: Any, random: Random, depth: int) -> None:
    items = getattr(found, field.name)
    if items and random.random() < 0.3:
        del items[random.randrange(len(items))]
        return
    for _ in range(random.choice((1, 1, 1, 2, 9, 70))):
        if field.cpp_type != Field.CPPTYPE_MESSAGE:
            items.append(_value(field, random))
        elif depth < DEEPEST:
            fill(items.add(), random, depth + 1)


def _value(field: Any, random: Random) -> Any:
    if field.cpp_type in _BITS:
        bits, signed = _BITS[field.cpp_type]
        return number(random, bits, signed=signed)
    if field.cpp_type == Field.CPPTYPE_ENUM:
        return random.choice(field.enum_type.values).number
    if field.cpp_type == Field.CPPTYPE_BOOL:
        return random.random() < 0.5
    if field.cpp_type in (Field.CPPTYPE_DOUBLE, Field.CPPTYPE_FLOAT):
        return random.choice((0.0, -1.0, 1e300, float("nan"), float("inf")))
    if field.type == Field.TYPE_BYTES:
        return random.choice(BYTES)
    text = random.choice(TOPICS if "topic" in field.name and random.random() < 0.8 else TEXTS)
    return text if random.random() < 0.9 else text[: random.randint(0, len(text))]


def head(data: bytes, random: Random) -> bytes:
    """Return a serialized BaseCommand with one change: mostly of a field, sometimes to bytes that no .proto allows."""
    base = pb.BaseCommand()
    try:
        base.ParseFromString(data)
    except Exception:  # whatever the error, the bytes are not a command
        return any_bytes(data, random)
    kind = random.random()
    if kind < 0.1:
        return any_bytes(data, random) if random.random() < 0.5 else spoiled(data, random)
    body = next((field for field, _ in base.ListFields() if field.cpp_type == Field.CPPTYPE_MESSAGE), None)
    if kind < 0.15 or body is None:
        message(base, random)
    elif kind < 0.25:  # protobuf merges a second body into the first one, here with a field of any number and value
        raw = _varint(random.randint(1, 12) << 3) + _varint(number(random, 64, signed=False))
        return data + _varint(body.number << 3 | 2) + _varint(len(raw)) + raw
    else:
        message(getattr(base, body.name), random)
    return base.SerializePartialToString()


def any_command(types: Sequence[int], random: Random) -> bytes:
    """Return a new command of one of these types."""
    base = pb.BaseCommand()
    base.type = random.choice(types)  # type: ignore[assignment]
    body = getattr(base, base.DESCRIPTOR.fields_by_number[base.type].name)
    body.SetInParent()
    fill(body, random, 1)
    return base.SerializePartialToString()


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])
