"""Apply a rule to a frame, and remember the commands whose answers a rule waits for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pulsarium.broker.commands.answers import Asked, Key, key_of_answer, key_of_command
from pulsarium.broker.lab.faults.rule import Rule
from pulsarium.broker.lab.faults.tapped import TappedFrame
from pulsarium.proto.commands import CommandSpec, Direction

if TYPE_CHECKING:
    from pulsarium.broker.lab.tap import Queue


UNTOUCHED: Mapping[str, Any] = {}


class Piece(NamedTuple):
    """A result of a frame: the data and note for observers, and the bytes that go on."""

    data: bytes
    note: Mapping[str, Any]
    wire: bytes


@dataclass(frozen=True, slots=True)
class Strike:
    """A frame that a rule acts on. At stage "after", `request` is the command that the frame answers."""

    queue: Queue
    rule: Rule
    frame: TappedFrame
    request: Asked | None = None

    @property
    def is_answer(self) -> bool:
        return self.request is not None

    @property
    def command(self) -> Asked:
        """Return the client's command that was selected."""
        return self.frame if self.request is None else self.request

    # results

    def untouched(self) -> Piece:
        return Piece(self.frame.data, UNTOUCHED, self.frame.data)

    def lost(self, did: str) -> Piece:
        """Return the piece of a frame that does not arrive."""
        return Piece(self.frame.data, self._note(did, arrived=False), b"")

    def changed(self, data: bytes, did: str) -> Piece:
        """Return the piece of a frame that arrives with other bytes."""
        return Piece(data, self._note(did), data)

    def cut(self, keep: int) -> Piece:
        """Return the piece of a frame whose first `keep` bytes arrive.

        A broker's decoder would keep the bytes until the rest comes, so the broker receives none.
        """
        wire = self.frame.data[:keep] if self.frame.sender is Direction.BROKER else b""
        return Piece(self.frame.data, self._note("truncated", keep=keep, arrived=False), wire)

    def hold(self, did: str, seconds: float | None, *, swaps: bool = False) -> None:
        """Hold the frame, and everything behind it, for `seconds` or until the rule is removed."""
        data = self.frame.data
        self.queue.wait(Piece(data, self._note(did), data), self.rule, seconds, swaps=swaps)

    def close(self) -> None:
        """Close the connection after the pieces of this frame."""
        self.queue.cut(f"fault {self.rule.id}: {self.rule.action.kind} {self.command.spec.name}")

    def _note(self, did: str, **more: Any) -> dict[str, Any]:
        legal = {"legal": True} if self.rule.legal else {}
        return {"fault": self.rule.id, "did": did, **legal, **more}


MOST = 10_000  # some commands are never answered, such as an ACK of a closed consumer


@dataclass
class Command:
    """A command without its entry, remembered until its answer."""

    spec: CommandSpec
    body: Any


class Claim(NamedTuple):
    """A command whose answer is reserved for a rule."""

    rule: Rule
    command: Command


class Claims:
    """The commands that wait for an answer, in order of arrival. Several commands may have the same id."""

    def __init__(self) -> None:
        self._waiting: dict[Key, list[Claim]] = {}
        self._count = 0
        self._closed = False

    def add(self, rule: Rule, command: Asked) -> None:
        """Reserve the answer to this command for the rule."""
        key = key_of_command(command)
        assert key is not None
        self._waiting.setdefault(key, []).append(Claim(rule, Command(command.spec, command.body)))
        self._count += 1
        if self._count > MOST:
            oldest = self._waiting.pop(next(iter(self._waiting)))
            self._count -= len(oldest)
            self._give_back(oldest)

    def answered(self, answer: Asked) -> Claim | None:
        """Return the claim on this answer, and remove the claim. Return None for an answer without one."""
        key = key_of_answer(answer) if self._waiting else None
        claims = None if key is None else self._waiting.get(key)
        if key is None or claims is None:
            return None
        claim = claims.pop(0)
        self._count -= 1
        if not claims:
            del self._waiting[key]
        return None if self._closed and not claim.rule.occurrence.take_back() else claim

    @property
    def waiting(self) -> bool:
        """Return whether any command waits for an answer."""
        return bool(self._waiting)

    def forget(self, rules: Collection[Rule]) -> None:
        """Remove the claims of removed rules."""
        left = {key: [claim for claim in claims if claim.rule not in rules] for key, claims in self._waiting.items()}
        self._waiting = {key: claims for key, claims in left.items() if claims}
        self._count = sum(map(len, self._waiting.values()))

    def close(self) -> None:
        """Give all turns back, because the connection ends. An answer among the last frames takes its turn again."""
        self._closed = True
        for claims in self._waiting.values():
            self._give_back(claims)

    @staticmethod
    def _give_back(claims: list[Claim]) -> None:
        for claim in claims:
            claim.rule.occurrence.give_back()
