"""Convert records of a capture to JSON, for people, and for programs that cannot parse protobuf."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pulsarium.capture.file import CaptureRecord
from pulsarium.capture.lint.checker import RecordFindings
from pulsarium.capture.lint.frames import Frame
from pulsarium.proto.drafts import drafts_in
from pulsarium.proto.entry import checksum_matches, parse_metadata, split, strip_broker_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.text import text_of

_SHORT = 64  # bytes of a field, unless `full` is set
_WITH_ENTRIES = {"SEND", "MESSAGE", "GET_LAST_MESSAGE_ID_RESPONSE"}


def described(number: int, record: CaptureRecord, seen: RecordFindings, *, full: bool = False) -> dict[str, Any]:
    """Return a record as JSON, without unknown values.

    The keys are number, connection, kind ("frame", "opened" or "closed"), sender, time (of day, by the broker's clock),
    monotonic_ns and note. A frame also has size, command, topic, fields, error, broken, latency_us (of an answer),
    draft (the proposals that it belongs to, if no release of Pulsar has it) and `entry` (see `entry_of`). With `full`,
    payloads are included, and long fields are not cut.
    """
    told: dict[str, Any] = {
        "number": number,
        "connection": record.connection,
        "kind": record.kind.name.lower(),
        "sender": record.sender.value,
        "time": _instant(record.wall_ns),
        "monotonic_ns": record.monotonic_ns,
    }
    frame = seen.frame
    if frame is not None:
        latency = next((each.latency_us for each in seen.exchanges if each.answer is frame), None)
        told |= {"size": record.size, "command": frame.name, "topic": frame.topic, "error": frame.error}
        told |= {"broken": frame.broken, "latency_us": latency}
        if frame.body is not None:
            told["fields"] = fields_of(frame.body, full=full)
            told["draft"] = [f"PIP-{number}" for number in sorted(drafts_in(frame.name, frame.body))] or None
        told["entry"] = entry_of(frame, full=full)
    told["note"] = dict(record.note) or None
    return {name: value for name, value in told.items() if value not in (None, "")}


def entry_of(frame: Frame, *, full: bool = False) -> dict[str, Any] | None:
    """Return the entry of a SEND or a MESSAGE as JSON, or None for other frames.

    The keys are size, messages, checksum (whether it matches), metadata, broker_metadata, payload_size, and with `full`
    payload. An entry that cannot be parsed has `broken`.
    """
    if not frame.entry_size or frame.name not in _WITH_ENTRIES:
        return None
    told: dict[str, Any] = {"size": frame.entry_size}
    try:
        broker_metadata, has_checksum, _, payload = split(frame.entry)
        metadata = parse_metadata(frame.entry)
        told["messages"] = metadata.num_messages_in_batch
        if has_checksum and frame.whole:
            told["checksum"] = bool(checksum_matches(strip_broker_metadata(frame.entry)))
        told["metadata"] = fields_of(metadata, full=full)
        if broker_metadata is not None:
            told["broker_metadata"] = fields_of(broker_metadata)
        told["payload_size"] = frame.entry_size - len(frame.entry) + len(payload)
        if full:
            told["payload"] = shown(payload, full=True)
    except EntryError as error:
        told["broken"] = str(error)
    return told


def fields_of(message: Any, *, full: bool = False) -> dict[str, Any]:
    """Return the fields that are set, with enums by name, and bytes as text where they are text."""
    told: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.is_repeated:
            pairs = field.message_type is not None and field.message_type.name == "KeyValue"
            known = {text_of(each.key): text_of(each.value) for each in value} if pairs else {}
            same = len(known) == len(value)
            told[field.name] = known if pairs and same else [_value(field, each, full) for each in value]
        else:
            told[field.name] = _value(field, value, full)
    return told


def shown(data: bytes, *, full: bool = False) -> str:
    """Return text, or `0x` and hexadecimal digits."""
    kept = data if full else data[:_SHORT]
    try:
        text = kept.decode()
    except UnicodeDecodeError:
        text = ""
    if not (text.isprintable() and text) and kept:
        text = f"0x{kept.hex()}"
    return text if len(kept) == len(data) else f"{text}... ({len(data)} bytes)"


def _value(field: Any, value: Any, full: bool) -> Any:
    if field.message_type is not None:
        return fields_of(value, full=full)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    if isinstance(value, bytes) and field.type == field.TYPE_BYTES:
        return shown(value, full=full)
    return text_of(value) if isinstance(value, bytes) else value


def _instant(ns: int) -> str:
    try:
        time = datetime.fromtimestamp(ns / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")
