"""Helpers for the tests of observers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulsarium.broker.lab.tap import SessionTap, taken_apart
from pulsarium.proto.commands import Direction
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Type


class Seen:
    """An observer that records the frames that the tap shows it, and the ends of streams."""

    def __init__(self) -> None:
        self.frames: list[tuple[Direction, str, Mapping[str, Any]]] = []
        self.data: list[bytes] = []
        self.ended: list[tuple[Direction, str]] = []

    def opened(self, tap: SessionTap) -> None: ...

    def frame(self, tap: SessionTap, sender: Direction, data: bytes, note: Mapping[str, Any]) -> None:
        name = Type.Type.Name(pb.BaseCommand.FromString(taken_apart(data)[0]).type)
        self.frames.append((sender, name, note))
        self.data.append(data)

    def closed(self, tap: SessionTap, sender: Direction, reason: str) -> None:
        self.ended.append((sender, reason))

    def of(self, name: str) -> list[Mapping[str, Any]]:
        return [note for _, each, note in self.frames if each == name]
