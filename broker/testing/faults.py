"""Faults, for tests that run in another thread than the broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict, Unpack

from pulsarium.broker.lab.faults import Action, Faults, Rule
from pulsarium.broker.lab.faults.text import action_from_json
from pulsarium.broker.lab.faults.which import Predicate
from pulsarium.broker.server import RunningCluster
from pulsarium.broker.testing.thread import LoopThread

Thread = LoopThread[RunningCluster]


class Selected(TypedDict, total=False):
    """Which frames a rule is about: all of it has to fit. Texts are globs."""

    sender: Literal["client", "broker"] | None
    """Whose frames; by default of who sends this command."""
    topic: str
    """By its full name, without its domain, or by its own name alone."""
    client_version: str
    producer: str
    """Its name."""
    consumer: str
    """Its name."""
    subscription: str
    broker: int | None
    """The index of the broker among those of the cluster."""
    predicate: Predicate | None
    """Called with each frame that fits else, in the broker's thread: it must not wait."""


class Timing(Selected, total=False):
    """Which of them, and when."""

    stage: Literal["before", "after"]
    """Whether a client's command is lost (answered, ...) or handled, and its answer is."""
    skip: int
    """So many pass first."""
    every: int
    """Each so many-th."""
    count: int | None
    """Act so often, by default once; None: for ever."""
    probability: float
    seed: int | None
    """Of the probability's dice, and of what is corrupted."""


class FaultRule:
    """A rule that was added. Leaving its `with` block removes it."""

    def __init__(self, thread: Thread, rule: Rule) -> None:
        self._thread = thread
        self._rule = rule

    def __repr__(self) -> str:
        return f"<fault {self.id}: {self._rule.action} of {self._rule.selector.command}, {self.hits} hits>"

    @property
    def id(self) -> int:
        """As REST and the command line name it."""
        return self._rule.id

    @property
    def hits(self) -> int:
        """How often it has acted; one that observes: how many frames it has seen."""
        return self._rule.hits

    @property
    def matched(self) -> int:
        """How many frames it selected, whether or not it was their turn."""
        return self._rule.matched

    def wait(self, hits: int = 1, *, timeout: float = 5.0) -> None:
        """Wait until it has hit so often in all.

        Raises AssertionError when it has not after `timeout` seconds, FaultError for more often than it ever will,
        FaultRemoved when it is removed before.
        """
        __tracebackhide__ = True
        try:
            self._thread.wait(timeout, self._rule.wait, hits)
        except TimeoutError:
            raise AssertionError(f"{self} after {timeout:g} s, not {hits}; {self.matched} frames fitted") from None

    def remove(self) -> None:
        """Let frames pass again; what it holds goes on. Twice is as good as once."""
        self._thread.call(self._rule.remove)

    def __enter__(self) -> FaultRule:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class FaultRules:
    """The faults of a broker.

    rule = broker.faults.add("drop", "SEND", topic="orders", count=2)
    ...
    rule.wait(2)
    """

    def __init__(self, thread: Thread, faults: Faults) -> None:
        self._thread = thread
        self._faults = faults

    def add(self, action: Action | str | Mapping[str, object], command: str, **which: Unpack[Timing]) -> FaultRule:
        """From now on `action` happens to frames of `command` (a name of the protocol, "*" for all), by default to the
        first one only. Raises FaultError for what makes no sense.

        The action may be given as in REST: "drop", {"kind": "delay", "seconds": 1}.
        """
        found = action if isinstance(action, Action) else action_from_json(action)
        return FaultRule(self._thread, self._thread.call(self._faults.add, found, command, **which))

    def observe(self, command: str, **which: Unpack[Selected]) -> FaultRule:
        """Count frames in the rule's `hits`, and do nothing to them. Raises FaultError."""
        return FaultRule(self._thread, self._thread.call(self._faults.observe, command, **which))

    @property
    def rules(self) -> Sequence[FaultRule]:
        """Those that there are, in the order in which they are asked."""
        return [FaultRule(self._thread, rule) for rule in self._faults.rules]

    def clear(self) -> None:
        """Remove all of them."""
        self._thread.call(self._faults.clear)
