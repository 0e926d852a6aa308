"""A rule, which is also the handle that a test receives. Its action, and the strikes of the action on frames."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import trio

from pulsarium.broker.commands import answers
from pulsarium.broker.commands.answers import Asked
from pulsarium.broker.lab.faults.tapped import TappedFrame
from pulsarium.broker.lab.faults.which import FaultError, FaultRemoved, FrameSelector, Occurrence, spec_of
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction

STAGES = ("before", "after")


@dataclass(frozen=True)
class Action:
    """An action on a frame. The docstring of a subclass is its text in docs/faults.md."""

    kind: ClassVar[str] = ""
    of_client_only: ClassVar[bool] = False
    observes: ClassVar[bool] = False
    """True for an action that changes nothing, so that other rules act too."""
    refuses: ClassVar[bool] = False
    """True for an action that puts an error in the place of an answer."""

    def misfit(self, spec: CommandSpec) -> str:
        """Return why this action can never apply to a frame of this command, or "" when it can.

        At stage "after" `spec` is the answer.
        """
        return ""

    def fits(self, frame: TappedFrame) -> bool:
        """Return whether this action can apply to the frame."""
        return not self.misfit(frame.spec)

    def act(self, strike: Strike) -> Iterator[Piece]:
        """Yield the pieces that replace the frame."""
        raise NotImplementedError


UNTOUCHED: Mapping[str, Any] = {}


class Piece(NamedTuple):
    """A result of a frame: the data and note for observers, and the bytes that go on."""

    data: bytes
    note: Mapping[str, Any]
    wire: bytes


class FrameQueue(Protocol):
    """The frames of one direction of a connection, as an action on one of them uses it."""

    def wait(self, piece: Piece, rule: InstalledFault, seconds: float | None, *, swaps: bool) -> None:
        """Put a piece back at the front, and hold the queue.

        The hold ends `seconds` after the frame arrived (`swaps`: from now), or when the rule is removed.
        """
        ...

    def cut(self, reason: str) -> None:
        """Stop the queue, and close the connection."""
        ...

    def claim(self, rule: InstalledFault, frame: TappedFrame) -> None:
        """Reserve the answer to a frame for a rule."""
        ...

    def take_next(self, accepts: Callable[[TappedFrame], bool]) -> bytes | None:
        """Take the next frame away, if it waits untouched and `accepts` returns True for it."""
        ...


@dataclass(frozen=True, slots=True)
class Strike:
    """A frame that a rule acts on. At stage "after", `request` is the command that the frame answers."""

    queue: FrameQueue
    rule: InstalledFault
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


class InstalledFault:
    """Select frames and apply an action to them. Leaving its `with` block removes the rule."""

    legal: ClassVar[bool] = False
    """True for a rule that does only what Pulsar may do."""

    def __init__(
        self,
        number: int,
        action: Action,
        selector: FrameSelector,
        stage: str,
        occurrence: Occurrence,
        remove: Callable[[InstalledFault], None],
    ) -> None:
        """Create a rule. Raise `FaultError` when the action cannot apply to the selected frames."""
        self.id = number
        self.action = action
        self.selector = selector
        self.stage = stage
        self.occurrence = occurrence
        self.hits = 0
        """How often the rule has acted. A rule that observes counts the frames."""
        self.matched = 0
        """How many frames matched, also those that `occurrence` passed over."""
        self.removed = False
        self._remove = remove
        self._hit = trio.Event()
        self._check()

    def _check(self) -> None:
        if self.stage not in STAGES:
            raise FaultError(f"stage is {self.stage!r}; it must be before or after")
        spec, sender = spec_of(self.selector.command), self.selector.sender
        if sender is Direction.BROKER and (self.after or self.action.of_client_only):
            what = 'stage "after"' if self.after else self.action.kind
            raise FaultError(f"{what} is for commands of a client")
        if self.observes and self.after:
            raise FaultError('a rule that observes has no stage "after"; observe the answer itself')
        if spec is None:
            return
        if self.after and not answers.has_answer(spec):
            raise FaultError(f'{spec.name} has no answer; stage "after" needs a command with an answer')
        if self.action.refuses and not answers.can_be_refused(spec):
            raise FaultError(f"{spec.name} has no answer that can be an error")
        misfit = self.action.misfit(self._struck(spec))
        if misfit:
            raise FaultError(misfit)

    def _struck(self, spec: CommandSpec) -> CommandSpec:
        """Return the command of the frame that the rule acts on."""
        return COMMANDS[spec.reply] if self.after and spec.reply is not None else spec

    @property
    def words(self) -> str:
        """Return what the rule does, in a few words."""
        topic, command = self.selector.which.get("topic", ""), self.selector.command
        what = f"{self.action.kind} {'every command' if command == '*' else command}"
        return f"{what}{' after it is handled' if self.after else ''}{f' of {topic}' if topic else ''}"

    @property
    def after(self) -> bool:
        """Return whether the command is handled before the rule acts."""
        return self.stage == "after"

    @property
    def observes(self) -> bool:
        return self.action.observes

    @property
    def chance(self) -> random.Random:
        return self.occurrence.chance

    def meant(self, frame: TappedFrame) -> bool:
        """Return whether to act on this frame, and count the frame."""
        if not (self.selector.fits(frame) and self._can_act_on(frame)):
            return False
        self.matched += 1
        return self.occurrence.strikes()

    def _can_act_on(self, frame: TappedFrame) -> bool:
        """Return whether the action can apply to this frame. A rule for "*" is checked only when a frame arrives."""
        if self.action.refuses or self.after:
            if frame.sender is Direction.BROKER or (self.after and answers.key_of_command(frame) is None):
                return False
            if self.action.refuses and answers.refusal(frame, 0, "") is None:
                return False
        if self.after:
            return not self.action.misfit(self._struck(frame.spec))
        return self.action.fits(frame)

    def acted(self) -> None:
        self.hits += 1
        self._wake()

    def ended(self) -> None:
        """Mark the rule as removed, and wake the callers of `wait`."""
        self.removed = True
        self._wake()

    def _wake(self) -> None:
        self._hit.set()
        self._hit = trio.Event()

    async def wait(self, n: int = 1) -> None:
        """Wait until the rule has acted `n` times in all.

        Raise `FaultError` when the rule never acts that often, and `FaultRemoved` when the rule is removed before.
        """
        if self.occurrence.count is not None and n > self.occurrence.count:
            raise FaultError(f"fault {self.id} acts at most {self.occurrence.count} times, not {n}")
        while self.hits < n:
            if self.removed:
                raise FaultRemoved(f"fault {self.id} was removed after {self.hits} of {n} hits")
            await self._hit.wait()

    def remove(self) -> None:
        """Stop acting, and release all frames that the rule holds. Further calls do nothing."""
        if not self.removed:
            self._remove(self)

    def __enter__(self) -> InstalledFault:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()
