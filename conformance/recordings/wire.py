"""Frames, and their JSON in recordings; of the broker's own code only the generated classes are used."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, MutableSequence
from typing import Any

from crc32c import crc32c

from pulsarium.proto.generated import PulsarApi_pb2 as pb


def now_ms() -> int:
    return int(time.time() * 1000)


def show(data: bytes) -> Any:
    """Return a short JSON value."""
    if data.isascii() and data.decode().isprintable():
        return data.decode() if len(data) <= 200 else data[:40].decode() + f"...({len(data)} bytes)"
    return {"hex": data[:40].hex(), "bytes": len(data)} if len(data) > 200 else {"hex": data.hex()}


def to_json(message: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for field, value in message.ListFields():
        several = isinstance(value, MutableSequence)
        out[field.name] = [_value(field, each) for each in value] if several else _value(field, value)
    return out


def _value(field: Any, value: Any) -> Any:
    if field.type == field.TYPE_MESSAGE:
        return to_json(value)
    if field.type == field.TYPE_BYTES:
        return show(value)
    if field.type == field.TYPE_ENUM:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else value
    return value


def fill(message: Any, fields: Mapping[str, Any]) -> Any:
    """Set the fields of a message, nested ones too; enums by name or number, bytes as text too."""
    for name, value in fields.items():
        field = message.DESCRIPTOR.fields_by_name[name]
        if isinstance(value, list | tuple):
            for each in value:
                if isinstance(each, dict):
                    fill(getattr(message, name).add(), each)
                else:
                    getattr(message, name).append(each)
        elif isinstance(value, dict):
            part = getattr(message, name)
            part.SetInParent()
            fill(part, value)
        elif field.type == field.TYPE_ENUM and isinstance(value, str):
            setattr(message, name, field.enum_type.values_by_name[value].number)
        elif field.type == field.TYPE_BYTES and isinstance(value, str):
            setattr(message, name, value.encode())
        else:
            setattr(message, name, value)
    return message


def field_of(type_name: str) -> str:
    """Return the field of BaseCommand that holds commands of a type."""
    number = pb.BaseCommand.Type.Value(type_name)
    return pb.BaseCommand.DESCRIPTOR.fields_by_number[number].name


def base(type_name: str, **fields: Any) -> Any:
    command: Any = pb.BaseCommand()
    command.type = pb.BaseCommand.Type.Value(type_name)
    part = getattr(command, field_of(type_name))
    part.SetInParent()
    fill(part, fields)
    return command


def command_bytes(type_name: str, **fields: Any) -> bytes:
    """Return an encoded BaseCommand; required fields may be left out."""
    encoded: bytes = base(type_name, **fields).SerializePartialToString()
    return encoded


def metadata_bytes(**fields: Any) -> bytes:
    encoded: bytes = fill(pb.MessageMetadata(), fields).SerializePartialToString()
    return encoded


def send_frame(pid: int, seq: int, payload: bytes = b"x", name: str = "p", publish_time: int = 1) -> bytes:
    """Return a whole SEND frame, to be sent with others in one segment."""
    metadata = metadata_bytes(producer_name=name, sequence_id=seq, publish_time=publish_time)
    return with_payload(command_bytes("SEND", producer_id=pid, sequence_id=seq), metadata, payload)


def simple(command: bytes) -> bytes:
    """Return the frame of a command without payload."""
    return struct.pack(">II", 4 + len(command), len(command)) + command


def with_payload(command: bytes, metadata: bytes, payload: bytes, crc: int | None = None, magic: bool = True) -> bytes:
    """Return a SEND frame, with another checksum than its own, or without one (`magic`), when that is asked for."""
    body = struct.pack(">I", len(metadata)) + metadata + payload
    if magic:
        body = b"\x0e\x01" + struct.pack(">I", crc32c(body) if crc is None else crc) + body
    return struct.pack(">II", 4 + len(command) + len(body), len(command)) + command + body


class Frame:
    """A frame of the broker's; the fields of its command are its own attributes too."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.md: Any = None
        self.payload = b""
        self.extra: dict[str, Any] = {}
        size = struct.unpack(">I", raw[4:8])[0]
        self.base = pb.BaseCommand()
        self.base.MergeFromString(raw[8 : 8 + size])
        self.type = pb.BaseCommand.Type.Name(self.base.type)
        self.cmd = getattr(self.base, field_of(self.type))
        rest = raw[8 + size :]
        if rest[:2] == b"\x0e\x02":
            size = struct.unpack(">I", rest[2:6])[0]
            entry_metadata = pb.BrokerEntryMetadata()
            entry_metadata.MergeFromString(rest[6 : 6 + size])
            self.extra["broker_entry_metadata"] = to_json(entry_metadata)
            rest = rest[6 + size :]
        if rest[:2] == b"\x0e\x01":
            checksum = struct.unpack(">I", rest[2:6])[0]
            rest = rest[6:]
            self.extra["crc32c"] = "ok" if checksum == crc32c(rest) else f"bad {checksum:08x}"
        elif rest:
            self.extra["crc32c"] = "absent"
        if rest:
            size = struct.unpack(">I", rest[:4])[0]
            self.md = pb.MessageMetadata()
            self.md.MergeFromString(rest[4 : 4 + size])
            self.payload = rest[4 + size :]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cmd, name)

    def id(self, **more: Any) -> dict[str, Any]:
        return {"ledgerId": self.cmd.message_id.ledgerId, "entryId": self.cmd.message_id.entryId, **more}

    def batch(self) -> list[dict[str, Any]]:
        """Return the messages of a plain batch. Raises an error where there are not as many as the metadata says."""
        left, out = self.payload, []
        for _ in range(self.md.num_messages_in_batch):
            if not left:
                break
            size = struct.unpack(">I", left[:4])[0]
            single = pb.SingleMessageMetadata()
            single.MergeFromString(left[4 : 4 + size])
            left = left[4 + size :]
            out.append({"metadata": to_json(single), "payload": show(left[: single.payload_size])})
            left = left[single.payload_size :]
        return out
