"""A rule, which is also the handle that a test receives."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import ClassVar

import trio

from pulsarium.broker.commands import answers
from pulsarium.broker.lab.faults.actions import Action, Answer, Observe
from pulsarium.broker.lab.faults.tapped import TappedFrame
from pulsarium.broker.lab.faults.which import FaultError, FaultRemoved, Occurrence, Selector, spec_of
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction

STAGES = ("before", "after")


class Rule:
    """Select frames and apply an action to them. Leaving its `with` block removes the rule."""

    legal: ClassVar[bool] = False
    """True for a rule that does only what Pulsar may do."""

    def __init__(
        self,
        number: int,
        action: Action,
        selector: Selector,
        stage: str,
        occurrence: Occurrence,
        remove: Callable[[Rule], None],
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
        if isinstance(self.action, Answer) and not answers.can_be_refused(spec):
            raise FaultError(f"{spec.name} has no answer that can be an error")
        misfit = self.action.misfit(self._struck(spec))
        if misfit:
            raise FaultError(misfit)

    def _struck(self, spec: CommandSpec) -> CommandSpec:
        """Return the command of the frame that the rule acts on."""
        return COMMANDS[spec.reply] if self.after and spec.reply is not None else spec

    @property
    def after(self) -> bool:
        """Return whether the command is handled before the rule acts."""
        return self.stage == "after"

    @property
    def observes(self) -> bool:
        return isinstance(self.action, Observe)

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
        if isinstance(self.action, Answer) or self.after:
            if frame.sender is Direction.BROKER or (self.after and answers.key_of_command(frame) is None):
                return False
            if isinstance(self.action, Answer) and answers.refusal(frame, 0, "") is None:
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

    def __enter__(self) -> Rule:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()
