"""The faults of a cluster: its rules, in the order in which they are asked."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Unpack, cast

from pulsarium.broker.lab.arguments import Selected, When, Which, arguments_of, check_names
from pulsarium.broker.lab.faults.actions import Action, Observe
from pulsarium.broker.lab.faults.rule import Rule
from pulsarium.broker.lab.faults.which import FaultError, Occurrence, Selector, sender_of, spec_of
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

    def add(self, action: Action, command: str, **which: Unpack[Which]) -> Rule:
        """From now on `action` happens to these frames, on connections that are open too.

        `command` is a name of BaseCommand.Type, or "*". `sender` is by default who sends the command. Names are globs
        (see Selector). At stage "before" it happens to the frame itself; at stage "after" the client's command is
        handled and it happens to the answer. `skip`, `every`, `count` (None: for ever), `probability` and `seed` say
        which of the frames it is (see Occurrence). Raises FaultError.
        """
        if not isinstance(action, Action):
            raise FaultError(f"action is {action!r}; it is one such as Drop()")
        check_names(which, Which)
        spec, stage, broker = spec_of(command), which.get("stage", "before"), which.get("broker")
        brokers = len(self._lab.cluster.brokers)
        if broker is not None and not 0 <= broker < brokers:
            raise FaultError(f"broker is {broker}; there are 0 to {brokers - 1}")
        whose = sender_of(spec, which.get("sender"))
        if whose is Direction.BOTH and (stage == "after" or action.of_client_only):
            whose = Direction.CLIENT
        occurrence = Occurrence(
            **cast(When, {name: each for name, each in which.items() if name in arguments_of(When)})
        )
        rule = Rule(next(self._numbers), action, Selector(command, whose, which), stage, occurrence, self._remove)
        self._set([*self.rules, rule])
        self._lab.use()
        for tap in self._lab.taps():
            tap.look()
        return rule

    def observe(self, command: str, **which: Unpack[Selected]) -> Rule:
        """Count these frames in the rule's `hits`, and do nothing to them. Raises FaultError."""
        check_names(which, Selected)
        return self.add(Observe(), command, count=None, **which)

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
