"""Bring a plan into the connections of a cluster, by rules that act where the plan chooses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import trio

from pulsarium.broker.lab.explore.coverage import Passed, Place
from pulsarium.broker.lab.explore.kinds import KINDS, START, Kind
from pulsarium.broker.lab.explore.plan import Plan
from pulsarium.broker.lab.explore.script import Decision
from pulsarium.broker.lab.explore.state import state_of
from pulsarium.broker.lab.faults.actions import Action, Drop
from pulsarium.broker.lab.faults.rule import Rule
from pulsarium.broker.lab.faults.tapped import TappedFrame
from pulsarium.broker.lab.faults.which import Occurrence, Selector, sender_of, spec_of
from pulsarium.broker.logs import Log
from pulsarium.proto.commands import Direction

if TYPE_CHECKING:
    from pulsarium.broker.cluster import Cluster
    from pulsarium.broker.lab.lab import Lab

log = Log("explore")

Work = Callable[[], Awaitable[object]]


class LegalRule(Rule):
    """A rule that does only what Pulsar may do. Captures show this, so the history checker still judges the topic."""

    legal = True


class Chooser(Occurrence):
    """Ask the plan at each choice point of one kind and command, and count the points."""

    def __init__(self, explorer: Explorer, kind: Kind, command: str) -> None:
        super().__init__(count=None, seed=0)
        self.explorer = explorer
        self.value = 0.0
        """The value of the last decision."""
        self._kind = kind
        self._command = command
        self._next = 0
        self._frame: TappedFrame | None = None

    def fits(self, frame: TappedFrame) -> bool:
        """Return whether the kind can be chosen at a frame."""
        self._frame = frame
        return self._kind.fits(frame)

    def strikes(self) -> bool:
        frame = self._frame
        if frame is None:
            return False
        index, self._next = self._next, self._next + 1
        decision = self.explorer.choose(self._kind, self._command, index, state_of(frame))
        if decision is None:
            return False
        values = self._kind.values
        self.value = decision.value if decision.value is not None else values[0] if values else 0.0
        return True

    def give_back(self) -> None:
        """Do nothing: a decision stays made when its frame never comes."""

    def take_back(self) -> bool:
        return True


class Run:
    """A plan, and the choice points and decisions of its run so far."""

    def __init__(self, plan: Plan) -> None:
        self.made: list[Decision] = []
        self.passed: list[Passed] = []
        self._plan = plan

    def settings(self) -> dict[str, Any]:
        """Return the broker.conf keys that the plan sets at the start."""
        at_start = (kind for kind in KINDS.values() if kind.action is None)
        chosen = (kind.config for kind in at_start if self.choose(kind, START, 0, ""))
        return {key: value for config in chosen for key, value in config.items()}

    def choose(self, kind: Kind, command: str, index: int, state: str) -> Decision | None:
        """Return the plan's decision at a choice point, and note the point."""
        decision = self._plan.choose(kind.name, command, index)
        self.passed.append(Passed(Place(kind.name, command, state), index, decision is not None))
        if decision is not None:
            self.made.append(decision)
        return decision


class Explorer:
    """The choices of one run of a cluster."""

    def __init__(self, lab: Lab, run: Run) -> None:
        self.lab = lab
        self._run = run
        self._rules: list[Rule] = []
        self._send, self._work = trio.open_memory_channel[Work](1000)
        self.lost_answer = self._rule(KINDS["duplicate"], "SEND", "after", Drop())
        """The rule that loses the first of two answers to one SEND."""

    @property
    def cluster(self) -> Cluster:
        return self.lab.cluster

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Make the choices of the plan until canceled."""
        for kind in KINDS.values():
            if kind.action is not None:
                for stage, commands in (("before", kind.before), ("after", kind.after)):
                    for command in commands:
                        self._rules.append(self._rule(kind, command, stage, kind.action))
        for rule in self._rules:
            self.lab.faults.install(rule)
        task_status.started()
        async for work in self._work:
            try:
                await work()
            except Exception as error:  # the run must go on, and its application will show what is wrong
                log.error("an act of the exploration failed", exception=error)

    def end(self) -> None:
        """Choose nothing more. Frames that wait go on."""
        self.lab.faults.remove(*self._rules)

    def soon(self, work: Work) -> None:
        """Do work that waits, after the work that was noted before."""
        self._send.send_nowait(work)

    def choose(self, kind: Kind, command: str, index: int, state: str) -> Decision | None:
        """Return the decision at a choice point."""
        return self._run.choose(kind, command, index, state)

    def _rule(self, kind: Kind, command: str, stage: str, action: Action) -> Rule:
        sender = sender_of(spec_of(command), None)
        if sender is Direction.BOTH:
            sender = Direction.CLIENT
        chooser = Chooser(self, kind, command)
        selector = Selector(command, sender, {"predicate": chooser.fits})
        faults = self.lab.faults
        return LegalRule(faults.next_id(), action, selector, stage, chooser, faults.remove)
