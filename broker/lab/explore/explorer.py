"""Bring a plan into the connections of a cluster, by rules that act where the plan chooses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import trio

from pulsarium.broker.lab.explore.actions import Chosen, Stage, consumer_of
from pulsarium.broker.lab.explore.coverage import ChoiceClass, Passed
from pulsarium.broker.lab.explore.kinds import KINDS, START, ChoiceKind
from pulsarium.broker.lab.explore.plan import Plan
from pulsarium.broker.lab.explore.script import Decision
from pulsarium.broker.lab.faults.actions import Drop
from pulsarium.broker.lab.faults.rule import Action, InstalledFault
from pulsarium.broker.lab.faults.tapped import TappedFrame
from pulsarium.broker.lab.faults.which import FrameSelector, sender_of, spec_of
from pulsarium.broker.lab.lab import Lab
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.proto.commands import Direction
from pulsarium.proto.generated import PulsarApi_pb2 as pb

log = PartLog("explore")


def state_of(frame: TappedFrame) -> str:
    """Return the state of the producer, the subscription or the transaction that a frame concerns."""
    words = []
    consumer, own, producer = frame.open_consumer, consumer_of(frame), frame.open_producer
    if consumer is not None:
        words.append(pb.CommandSubscribe.SubType.Name(consumer.type))
        if own is not None:
            words.append("with others" if len(own.subscription.consumers) > 1 else "alone")
        if frame.name == "MESSAGE" and frame.body.redelivery_count:
            words.append("redelivered")
        elif frame.name == "ACK":
            words.append(pb.CommandAck.AckType.Name(frame.body.ack_type).lower())
        elif frame.name != "MESSAGE" and own is not None and own.unacked:
            words.append("with unacknowledged messages")
    if isinstance(producer, Producer):
        words.append("with consumers" if producer.topic.subscriptions else "without subscription")
    if "txnid_least_bits" in frame.body.DESCRIPTOR.fields_by_name and frame.body.HasField("txnid_least_bits"):
        words.append("in a transaction")
    return ", ".join(words)


class LegalRule(InstalledFault):
    """A rule that does only what Pulsar may do. Captures show this, so the history checker still judges the topic."""

    legal = True


class Chooser(Chosen):
    """Ask the plan at each choice point of one kind and command, and count the points."""

    def __init__(self, stage: Stage, run: PlannedRun, kind: ChoiceKind, command: str) -> None:
        super().__init__(stage)
        self._run = run
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
        decision = self._run.choose(self._kind, self._command, index, state_of(frame))
        if decision is None:
            return False
        values = self._kind.values
        self.value = decision.value if decision.value is not None else values[0] if values else 0.0
        return True

    def give_back(self) -> None:
        """Do nothing: a decision stays made when its frame never comes."""

    def take_back(self) -> bool:
        return True


class PlannedRun:
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

    def choose(self, kind: ChoiceKind, command: str, index: int, state: str) -> Decision | None:
        """Return the plan's decision at a choice point, and note the point."""
        decision = self._plan.choose(kind.name, command, index)
        self.passed.append(Passed(ChoiceClass(kind.name, command, state), index, decision is not None))
        if decision is not None:
            self.made.append(decision)
        return decision


class Explorer:
    """The choices of one run of a cluster, or of a proxy."""

    def __init__(self, lab: Lab, run: PlannedRun, kinds: Iterable[ChoiceKind] = KINDS.values()) -> None:
        self._faults = lab.faults
        self._run = run
        self._kinds = kinds
        self._rules: list[InstalledFault] = []
        self._stage = Stage(lab)
        self._stage.lost_answer = self._rule(KINDS["duplicate"], "SEND", "after", Drop())

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Make the choices of the plan until canceled."""
        for kind in self._kinds:
            if kind.action is not None:
                for stage, commands in (("before", kind.before), ("after", kind.after)):
                    for command in commands:
                        self._rules.append(self._rule(kind, command, stage, kind.action))
        for rule in self._rules:
            self._faults.install(rule)
        task_status.started()
        async for work in self._stage.work:
            try:
                await work()
            except Exception as error:  # the run must go on, and its application will show what is wrong
                log.error("an act of the exploration failed", exception=error)

    def end(self) -> None:
        """Choose nothing more. Frames that wait go on."""
        self._faults.remove(*self._rules)

    def _rule(self, kind: ChoiceKind, command: str, stage: str, action: Action) -> InstalledFault:
        sender = sender_of(spec_of(command), None)
        if sender is Direction.BOTH:
            sender = Direction.CLIENT
        chooser = Chooser(self._stage, self._run, kind, command)
        selector = FrameSelector(command, sender, {"predicate": chooser.fits})
        return LegalRule(self._faults.next_id(), action, selector, stage, chooser, self._faults.remove)
