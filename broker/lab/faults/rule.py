"""A rule, which is also the handle that a test has."""

from __future__ import annotations

import random
from collections.abc import Callable

import trio

from pulsarium.broker.commands import answers
from pulsarium.broker.lab.faults.actions import Action, Answer, Observe
from pulsarium.broker.lab.faults.tapped import TappedFrame
from pulsarium.broker.lab.faults.which import FaultError, FaultRemoved, Occurrence, Selector, spec_of
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction

STAGES = ("before", "after")


class Rule:
    """Selects frames and does something to them. Leaving its `with` block removes it."""

    def __init__(
        self,
        number: int,
        action: Action,
        selector: Selector,
        stage: str,
        occurrence: Occurrence,
        remove: Callable[[Rule], None],
    ) -> None:
        """Raises FaultError for what cannot be done."""
        self.id = number
        self.action = action
        self.selector = selector
        self.stage = stage
        self.occurrence = occurrence
        self.hits = 0
        """How often it has acted; one that observes: how many frames it has seen."""
        self.matched = 0
        """How many frames were selected, whether or not it was their turn."""
        self.removed = False
        self._remove = remove
        self._hit = trio.Event()
        self._check()

    def _check(self) -> None:
        if self.stage not in STAGES:
            raise FaultError(f"stage is {self.stage!r}; it is before or after")
        spec, sender = spec_of(self.selector.command), self.selector.sender
        if sender is Direction.BROKER and (self.after or self.action.of_client_only):
            what = 'stage "after"' if self.after else self.action.kind
            raise FaultError(f"{what} is for commands of a client")
        if self.observes and self.after:
            raise FaultError('what is observed has no stage "after"; observe the answer itself')
        if spec is None:
            return
        if self.after and not answers.has_answer(spec):
            raise FaultError(f'{spec.name} has no answer, which stage "after" is about')
        if isinstance(self.action, Answer) and not answers.can_be_refused(spec):
            raise FaultError(f"{spec.name} has no answer that could be an error")
        misfit = self.action.misfit(self._struck(spec))
        if misfit:
            raise FaultError(misfit)

    def _struck(self, spec: CommandSpec) -> CommandSpec:
        """The command of the frame that is acted on."""
        return COMMANDS[spec.reply] if self.after and spec.reply is not None else spec

    @property
    def after(self) -> bool:
        """Whether the work is done first."""
        return self.stage == "after"

    @property
    def observes(self) -> bool:
        return isinstance(self.action, Observe)

    @property
    def chance(self) -> random.Random:
        return self.occurrence.chance

    def meant(self, frame: TappedFrame) -> bool:
        """Whether it acts on this frame; counts it."""
        if not (self.selector.fits(frame) and self._can_act_on(frame)):
            return False
        self.matched += 1
        return self.occurrence.strikes()

    def _can_act_on(self, frame: TappedFrame) -> bool:
        """For a command that was named this is checked already, but not whether this one is answered."""
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
        """It was removed."""
        self.removed = True
        self._wake()

    def _wake(self) -> None:
        self._hit.set()
        self._hit = trio.Event()

    async def wait(self, n: int = 1) -> None:
        """Wait until it has acted `n` times in all. Raises FaultError for more than it ever will, FaultRemoved when it
        is removed before."""
        if self.occurrence.count is not None and n > self.occurrence.count:
            raise FaultError(f"fault {self.id} acts at most {self.occurrence.count} times, not {n}")
        while self.hits < n:
            if self.removed:
                raise FaultRemoved(f"fault {self.id} was removed after {self.hits} hits; {n} were waited for")
            await self._hit.wait()

    def remove(self) -> None:
        """Act no more, and let go of everything that waits because of it. Twice is as good as once."""
        if not self.removed:
            self._remove(self)

    def __enter__(self) -> Rule:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()
