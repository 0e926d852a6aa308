"""The rules of a cluster, in the order in which they are tried."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Unpack, cast

from pulsarium.broker.lab.acts import Undo, acts_of
from pulsarium.broker.lab.arguments import Selected, When, Which, arguments_of, check_names
from pulsarium.broker.lab.faults.actions import Observe
from pulsarium.broker.lab.faults.rule import Action, InstalledFault
from pulsarium.broker.lab.faults.which import FaultError, FrameSelector, Occurrence, sender_of, spec_of
from pulsarium.proto.commands import Direction

if TYPE_CHECKING:  # a tap imports this package first
    from pulsarium.broker.lab.tap import Taps


class Faults:
    """The faults of a cluster.

    Only the first matching rule acts on a frame; rules that observe see every matching frame.
    """

    def __init__(self, taps: Taps) -> None:
        self._taps = taps
        self._numbers = itertools.count(1)

    @property
    def rules(self) -> list[InstalledFault]:
        """Return the rules in order. Each change makes a new list."""
        return self._taps.rules

    def add(self, action: Action, command: str, **which: Unpack[Which]) -> InstalledFault:
        """Add a rule that applies `action` to matching frames from now on, also on open connections.

        `command` is a name of BaseCommand.Type, or "*". `sender` is by default the side that sends the command. Names
        are globs (see Selector). Stage "before" acts on the frame itself. Stage "after" handles the client's command
        and acts on the answer. `skip`, `every`, `count` (None: no limit), `probability` and `seed` choose among the
        matching frames (see Occurrence). Raise `FaultError` when the arguments do not fit together.
        """
        if not isinstance(action, Action):
            raise FaultError(f"action is {action!r}; pass an action such as Drop()")
        check_names(which, Which)
        spec, stage, broker = spec_of(command), which.get("stage", "before"), which.get("broker")
        brokers = len(self._taps.cluster.brokers)
        if broker is not None and not 0 <= broker < brokers:
            raise FaultError(f"broker is {broker}; there are 0 to {brokers - 1}")
        whose = sender_of(spec, which.get("sender"))
        if whose is Direction.BOTH and (stage == "after" or action.of_client_only):
            whose = Direction.CLIENT
        occurrence = Occurrence(
            **cast(When, {name: each for name, each in which.items() if name in arguments_of(When)})
        )
        rule = self.install(
            InstalledFault(self.next_id(), action, FrameSelector(command, whose, which), stage, occurrence, self.remove)
        )
        undo = Undo("DELETE", f"/lab/faults/{rule.id}", lambda: not rule.removed)
        self._note(f"added fault {rule.id}: {rule.words}", rule, undo)
        return rule

    def _note(self, what: str, rule: InstalledFault, undo: Undo | None = None) -> None:
        topic = rule.selector.which.get("topic", "")
        acts_of(self._taps.cluster).note(what, topic=topic, undo=undo, hits=lambda: rule.hits)

    def next_id(self) -> int:
        """Return the id of a new rule."""
        return next(self._numbers)

    def install(self, rule: InstalledFault) -> InstalledFault:
        """Let a rule act from now on, also on open connections."""
        self._set([*self.rules, rule])
        self._taps.look()
        return rule

    def observe(self, command: str, **which: Unpack[Selected]) -> InstalledFault:
        """Count matching frames in the rule's `hits`, and change nothing. Raise `FaultError`."""
        check_names(which, Selected)
        return self.add(Observe(), command, count=None, **which)

    def _set(self, rules: list[InstalledFault], *gone: InstalledFault) -> None:
        specs = [spec_of(rule.selector.command) for rule in rules]
        commands = None if None in specs else frozenset(spec.type for spec in specs if spec is not None)
        self._taps.obey(rules, commands, gone)

    def find(self, number: int) -> InstalledFault | None:
        """Return the rule of this id, or None."""
        return next((rule for rule in self.rules if rule.id == number), None)

    def clear(self) -> None:
        """Remove every rule."""
        self.remove(*self.rules)

    def remove(self, *gone: InstalledFault) -> None:
        """Remove rules, and release the frames that they hold."""
        self._set([rule for rule in self.rules if rule not in gone], *gone)
        for rule in gone:
            if not rule.legal:
                self._note(f"removed fault {rule.id}: {rule.words}", rule)
