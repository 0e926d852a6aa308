"""Format the records of a capture as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from pulsarium.capture.as_json import described
from pulsarium.capture.file import CaptureRecord, EventKind
from pulsarium.capture.lint.checker import RecordFindings
from pulsarium.proto.commands import Direction
from pulsarium.proto.text import printable

_ARROWS = {Direction.CLIENT: "→", Direction.BROKER: "←"}
_COLOURS = {Direction.CLIENT: "cyan", Direction.BROKER: "green"}
_QUIET = {"PING", "PONG", "FLOW"}
_LONGEST = 80  # characters of a value


class Style(Protocol):
    """Add colors and weight to a text."""

    def __call__(
        self, text: str, *, fg: str | None = None, bold: bool | None = None, dim: bool | None = None
    ) -> str: ...


def unstyled(text: str, *, fg: str | None = None, bold: bool | None = None, dim: bool | None = None) -> str:
    """Return the text as it is."""
    return text


class CaptureLines:
    """Format the records of one capture. Times are in seconds since the first record."""

    def __init__(self, *, full: bool = False, style: Style = unstyled) -> None:
        """Create a formatter. With `full`, all fields follow on lines of their own."""
        self._style = style
        self._full = full
        self._begin: int | None = None

    def of(self, number: int, record: CaptureRecord, seen: RecordFindings) -> str:
        if self._begin is None:
            self._begin = record.monotonic_ns
        seconds = (record.monotonic_ns - self._begin) / 1e9
        told = described(number, record, seen, full=self._full)
        head = f"{seconds:12.6f} #{record.connection:<3} {_ARROWS[record.sender]} "
        line = self._style(head, dim=True) + self._what(record, seen, told)
        return "\n".join([line, *(self._below(told) if self._full else ())])

    def _what(self, record: CaptureRecord, seen: RecordFindings, told: Mapping[str, Any]) -> str:
        note = _pairs(told.get("note", {}))
        if seen.frame is None:
            word = "opened" if record.kind is EventKind.OPENED else f"closed by the {record.sender.value}"
            return self._style(f"{word} {note}".rstrip(), bold=True)
        frame = seen.frame
        name = f"{frame.name or '?':<22}"
        bad = bool(frame.error or frame.broken)
        name = self._style(name, fg="red" if bad else _COLOURS[record.sender], bold=bad, dim=frame.name in _QUIET)
        parts = [name, _pairs(told.get("fields", {}), hidden={"topic"} if frame.topic else set())]
        if frame.topic:
            parts.append(self._style(printable(frame.topic), fg="blue"))
        if "entry" in told:
            parts.append(self._entry(told["entry"]))
        if frame.broken:
            parts.append(self._style(printable(frame.broken), fg="red"))
        if "latency_us" in told:
            parts.append(self._style(f"+{_duration(told['latency_us'])}", dim=True))
        if "draft" in told:
            parts.append(self._style(f"[draft: {', '.join(told['draft'])}]", fg="yellow"))
        if note:
            parts.append(self._style(f"[{note}]", fg="yellow"))
        parts.append(self._style(f"{record.size} B", dim=True))
        return " ".join(part for part in parts if part)

    def _entry(self, entry: Mapping[str, Any]) -> str:
        if "broken" in entry:
            return self._style(f"[{printable(entry['broken'])}]", fg="red")
        metadata, count = entry["metadata"], entry["messages"]
        words = [f"{count} messages" if count != 1 else "1 message", f"{entry['payload_size']} B"]
        words += [f"{name}={_value(metadata[name])}" for name in _OF_ENTRY if name in metadata]
        if entry.get("checksum") is False:
            words.append(self._style("checksum does not fit", fg="red"))
        return f"[{', '.join(words)}]"

    def _below(self, told: Mapping[str, Any]) -> Iterator[str]:
        for name in ("fields", "entry", "note"):
            if told.get(name):
                yield from _tree(name, told[name], 17)


def _tree(name: str, value: Any, indent: int) -> Iterator[str]:
    space = " " * indent
    if isinstance(value, Mapping):
        yield f"{space}{name}:"
        for key, inner in value.items():
            yield from _tree(printable(str(key)), inner, indent + 2)
    elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        for number, inner in enumerate(value):
            yield from _tree(f"{name}[{number}]", inner, indent)
    else:
        yield f"{space}{name}: {printable(str(value))}"


def _pairs(fields: Mapping[str, Any], hidden: set[str] = frozenset()) -> str:  # type: ignore[assignment]
    return " ".join(f"{printable(name)}={_value(value)}" for name, value in fields.items() if name not in hidden)


def _value(value: Any) -> str:
    if isinstance(value, Mapping) and {"ledgerId", "entryId"} <= value.keys():
        text = message_id(value)
    elif isinstance(value, Mapping):
        text = "{" + _pairs(value) + "}"
    elif isinstance(value, list):
        text = "[" + ",".join(_value(each) for each in value) + "]"
    elif isinstance(value, bool):
        text = str(value).lower()
    else:
        text = printable(str(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def message_id(fields: Mapping[str, Any]) -> str:
    """Return a message id as LEDGER:ENTRY[:BATCH][@PARTITION]."""
    batch = fields.get("batch_index", -1)
    partition = fields.get("partition", -1)
    text = f"{fields['ledgerId']}:{fields['entryId']}" + (f":{batch}" if batch >= 0 else "")
    return text + (f"@{partition}" if partition >= 0 else "")


_OF_ENTRY = (
    *("partition_key", "ordering_key", "compression", "chunk_id", "num_chunks_from_msg", "deliver_at_time"),
    *("marker_type", "properties"),
)


def _duration(microseconds: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.0f} µs"
