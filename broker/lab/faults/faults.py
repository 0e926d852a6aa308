"""The faults of a cluster: its rules, in the order in which they are asked."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from pulsarium.broker.lab.faults.actions import Action, Observe
from pulsarium.broker.lab.faults.errors import FaultError
from pulsarium.broker.lab.faults.occurrence import Occurrence
from pulsarium.broker.lab.faults.rule import Rule
from pulsarium.broker.lab.faults.selector import ANY, Predicate, Selector, sender_of, spec_of
from pulsarium.proto.commands import Direction

if TYPE_CHECKING:
    from pulsarium.broker.lab.lab import Lab


class Faults:
    """The first rule that is meant acts on a frame, alone; those that observe see every frame that they select."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._numbers = itertools.count(1)
        self.rules: list[Rule] = []
        """In their order. A new list with each change, so that one who goes through it may change it."""
        self.commands: frozenset[int] | None = frozenset()
        """That any rule is about; None: all."""

    def add(
        self,
        action: Action,
        command: str,
        *,
        sender: str | None = None,
        topic: str = ANY,
        client_version: str = ANY,
        producer: str = ANY,
        consumer: str = ANY,
        subscription: str = ANY,
        broker: int | None = None,
        predicate: Predicate | None = None,
        stage: str = "before",
        skip: int = 0,
        every: int = 1,
        count: int | None = 1,
        probability: float = 1.0,
        seed: int | None = None,
    ) -> Rule:
        """From now on `action` happens to these frames, on connections that are open too.

        `command` is a name of BaseCommand.Type, or "*". `sender` is "client" or "broker", by default who sends the
        command. Names are globs (see Selector). At stage "before" it happens to the frame itself; at stage "after" the
        client's command is handled and it happens to the answer. `skip`, `every`, `count` (None: for ever),
        `probability` and `seed` say which of the frames it is (see Occurrence). Raises FaultError.
        """
        if not isinstance(action, Action):
            raise FaultError(f"action is {action!r}; it is one such as Drop()")
        spec = spec_of(command)
        brokers = len(self._lab.cluster.brokers)
        if broker is not None and not 0 <= broker < brokers:
            raise FaultError(f"broker is {broker}; there are 0 to {brokers - 1}")
        whose = sender_of(spec, sender)
        if whose is Direction.BOTH and (stage == "after" or action.of_client_only):
            whose = Direction.CLIENT
        selector = Selector(command, whose, topic, client_version, producer, consumer, subscription, broker, predicate)
        occurrence = Occurrence(skip, every, count, probability, seed)
        rule = Rule(next(self._numbers), action, selector, stage, occurrence, self._remove)
        self._set([*self.rules, rule])
        self._lab.use()
        for tap in self._lab.taps():
            tap.look()
        return rule

    def observe(
        self,
        command: str,
        *,
        sender: str | None = None,
        topic: str = ANY,
        client_version: str = ANY,
        producer: str = ANY,
        consumer: str = ANY,
        subscription: str = ANY,
        broker: int | None = None,
        predicate: Predicate | None = None,
    ) -> Rule:
        """Count these frames in the rule's `hits`, and do nothing to them. Raises FaultError."""
        return self.add(
            Observe(),
            command,
            sender=sender,
            topic=topic,
            client_version=client_version,
            producer=producer,
            consumer=consumer,
            subscription=subscription,
            broker=broker,
            predicate=predicate,
            count=None,
        )

    def _set(self, rules: list[Rule]) -> None:
        self.rules = rules
        specs = [spec_of(rule.selector.command) for rule in rules]
        self.commands = None if None in specs else frozenset(spec.type for spec in specs if spec is not None)

    def find(self, number: int) -> Rule | None:
        """The rule of this id."""
        return next((rule for rule in self.rules if rule.id == number), None)

    def clear(self) -> None:
        """Remove every rule."""
        self._remove(*self.rules)

    def _remove(self, *gone: Rule) -> None:
        self._set([rule for rule in self.rules if rule not in gone])
        for rule in gone:
            rule.ended()
        for tap in self._lab.taps():
            tap.release(gone)
        self._lab.rest()
