"""A rule acting on a frame, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pulsarium.broker.commands.answers import Asked
from pulsarium.broker.lab.faults.passing import Passing
from pulsarium.broker.lab.faults.rule import Rule
from pulsarium.proto.commands import Direction

if TYPE_CHECKING:
    from pulsarium.broker.lab.lane import Lane

UNTOUCHED: Mapping[str, Any] = {}


class Piece(NamedTuple):
    """What comes of a frame: what observers are shown, with its note, and the bytes that go on."""

    data: bytes
    note: Mapping[str, Any]
    wire: bytes


@dataclass(frozen=True, slots=True)
class Strike:
    """One frame that a rule acts on. `request` is the command that it answers, at stage "after"."""

    lane: Lane
    rule: Rule
    frame: Passing
    request: Asked | None = None

    @property
    def is_answer(self) -> bool:
        return self.request is not None

    @property
    def command(self) -> Asked:
        """The client's command that was selected."""
        return self.frame if self.request is None else self.request

    # what may come of it

    def untouched(self) -> Piece:
        return Piece(self.frame.data, UNTOUCHED, self.frame.data)

    def lost(self, did: str) -> Piece:
        """It does not arrive."""
        return Piece(self.frame.data, self._note(did, arrived=False), b"")

    def changed(self, data: bytes, did: str) -> Piece:
        """Something else arrives."""
        return Piece(data, self._note(did), data)

    def cut(self, keep: int) -> Piece:
        """Its beginning arrives. The broker's decoder keeps that to itself until the rest would come."""
        wire = self.frame.data[:keep] if self.frame.sender is Direction.BROKER else b""
        return Piece(self.frame.data, self._note("truncated", keep=keep, arrived=False), wire)

    def hold(self, did: str, seconds: float | None, *, swaps: bool = False) -> None:
        """It arrives later, and so does what is behind it."""
        data = self.frame.data
        self.lane.wait(Piece(data, self._note(did), data), self.rule, seconds, swaps=swaps)

    def close(self) -> None:
        """End the connection, after what was told to come of this frame."""
        self.lane.cut(f"fault {self.rule.id}: {self.rule.action.kind} {self.command.spec.name}")

    def _note(self, did: str, **more: Any) -> dict[str, Any]:
        return {"fault": self.rule.id, "did": did, **more}
