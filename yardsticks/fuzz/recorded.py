"""Bytes that clients sent in the recorded transcripts, adapted to a new broker."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError, Message

from pulsarium.conformance.recordings.releases import PULSAR_4
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb

LONGEST = 60  # chunks of one conversation, at most

#: The number of a connection, and bytes that its client sent.
Chunk = tuple[int, bytes]


@cache
def conversations() -> list[list[Chunk]]:
    """Return the chunks that the clients of each transcript sent."""
    return [_conversation(path) for path in sorted(PULSAR_4.folder.glob("*.jsonl"))]


def _conversation(path: Path) -> list[Chunk]:
    header, *events = (json.loads(line) for line in path.read_text().splitlines())
    connections: dict[str, int] = {}
    names = Names(str(header.get("config", {}).get("namespace", "")))
    chunks: list[Chunk] = []
    for event in events:
        raw = event.get("raw")
        if event.get("dir") != "c2b" or not isinstance(raw, str) or len(raw) > 8000:
            continue
        try:
            data = bytes.fromhex(raw)
        except ValueError:  # the transcript has only a part of the bytes
            continue
        chunks.append((connections.setdefault(event["conn"], len(connections)), names.renamed(data)))
    return chunks[:LONGEST]


class Names:
    """Replace the namespace and the ledgers of the recorded broker by those of the new broker."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._ledgers: dict[int, int] = {}

    def renamed(self, data: bytes) -> bytes:
        """Return frames with public/default and the new broker's ledgers. Return bytes that are no frames unchanged."""
        decoder = FrameDecoder()
        made = []
        for head, trailing in (frames := decoder.feed(data)):
            base = pb.BaseCommand()
            try:
                base.ParseFromString(head)
            except DecodeError:
                return data
            self._rename(base)
            made.append(frame(base.SerializePartialToString(), trailing))
        whole = not decoder.pending and decoder.error is None
        return b"".join(made) if frames and whole else data

    def _rename(self, found: Message) -> None:
        for field, value in found.ListFields():
            if field.name == "ledgerId":
                setattr(found, field.name, self._ledgers.setdefault(value, len(self._ledgers)))
            elif field.cpp_type == field.CPPTYPE_MESSAGE:
                for inner in value if field.is_repeated else [value]:
                    self._rename(inner)
            elif field.cpp_type == field.CPPTYPE_STRING and field.type == field.TYPE_STRING:
                self._rename_text(found, field.name, value, repeated=field.is_repeated)

    def _rename_text(self, found: Message, name: str, value: Any, *, repeated: bool) -> None:
        def ours(text: str | bytes) -> str:
            plain = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
            return plain.replace(self._namespace, "public/default") if self._namespace else plain

        if repeated:
            texts: Iterable[str] = [ours(text) for text in value]
            found.ClearField(name)
            getattr(found, name).extend(texts)
        else:
            setattr(found, name, ours(value))
