"""The lab of a cluster, shared by all its brokers. Parts that are not used cost nothing."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pulsarium.broker.cluster import Cluster
    from pulsarium.broker.lab.capture import Captures
    from pulsarium.broker.lab.clock import LabClock
    from pulsarium.broker.lab.expectations import Changes
    from pulsarium.broker.lab.faults import Faults
    from pulsarium.broker.lab.linter import Linter
    from pulsarium.broker.lab.masks import Masks
    from pulsarium.broker.lab.namespaces import Leaving
    from pulsarium.broker.lab.state import State
    from pulsarium.broker.lab.tap import Observer, SessionTap
    from pulsarium.broker.lab.why import Why
    from pulsarium.broker.session.session import Session
    from pulsarium.proto.generated import PulsarApi_pb2 as pb


class Lab:
    """The parts of the lab, each created at its first use."""

    def __init__(self, cluster: Cluster, folder: Path | None = None) -> None:
        self.cluster = cluster
        self.folder = folder
        """The folder below which HTTP callers may write files, or None to forbid files."""
        self.observers: list[Observer] = []
        self._numbers = itertools.count(1)

    def stop(self) -> None:
        """End all captures, because the cluster closes."""
        if "captures" in vars(self):
            self.captures.stop()

    # parts

    @cached_property
    def clock(self) -> LabClock:
        """Return the clock that freezes and advances time."""
        from pulsarium.broker.lab.clock import LabClock

        return LabClock(self.cluster)

    @cached_property
    def faults(self) -> Faults:
        """Return the rules that act on frames."""
        from pulsarium.broker.lab.faults import Faults

        return Faults(self)

    @cached_property
    def captures(self) -> Captures:
        """Return the captures of frames, in files or in memory."""
        from pulsarium.broker.lab.capture import Captures

        return Captures(self)

    @cached_property
    def masks(self) -> Masks:
        """Return the masks that change the broker for some clients."""
        from pulsarium.broker.lab.masks import Masks

        return Masks(self)

    @cached_property
    def linter(self) -> Linter:
        """Return the linter that finds mistakes of clients."""
        from pulsarium.broker.lab.linter import Linter

        return Linter(self)

    @cached_property
    def leaving(self) -> Leaving:
        """Return the namespaces that go once their last client has left."""
        from pulsarium.broker.lab.namespaces import Leaving

        return Leaving(self.cluster)

    @cached_property
    def changes(self) -> Changes:
        """Return the waits for changes of topics and subscriptions."""
        from pulsarium.broker.lab.expectations import Changes

        return Changes(self.cluster.turn)

    @cached_property
    def state(self) -> State:
        """Return the state, to reset, save, restore or seed it."""
        from pulsarium.broker.lab.state import State

        return State(self)

    def why(self, topic: str, subscription: str | None, message_id: str | None = None) -> Why:
        """Explain why a message was not delivered. Without an id, explain the next one. Raise `WhyError`.

        For a scalable topic without a subscription, explain its scaling.
        """
        from pulsarium.broker.lab.why import explain

        return explain(self.cluster, topic, subscription, message_id)

    # observers

    def observe(self, observer: Observer) -> None:
        """Show all frames to an observer from now on, including those of open connections."""
        self.observers.append(observer)
        self.use()
        for tap in self.taps():
            observer.opened(tap)

    def forget(self, observer: Observer) -> None:
        """Stop showing frames to an observer."""
        # A new list, because an observer may leave while the list is iterated.
        self.observers = [each for each in self.observers if each is not observer]
        self.rest()

    # connections

    def attend(self) -> None:
        """Receive all new connections from the cluster."""
        self.cluster.hooks = self

    def use(self) -> None:
        """Put a tap on every connection, because an observer or a rule needs frames."""
        self.attend()
        for broker in self.cluster.brokers:
            for session in broker.sessions:
                if session.outgoing.tap is None:
                    self._tap(session)

    def rest(self) -> None:
        """Remove all taps when no observer and no rule needs them, so that an unused lab costs nothing."""
        if not self.busy:
            for tap in self.taps():
                tap.remove()
            if not self.masks.worn:
                self.cluster.hooks = None

    @property
    def busy(self) -> bool:
        """Return whether an observer or a rule needs frames."""
        return bool(self.observers or self.faults.rules)

    def taps(self) -> list[SessionTap]:
        """Return the taps of the open connections."""
        from pulsarium.broker.lab.tap import SessionTap

        sessions = (session for broker in self.cluster.brokers for session in broker.sessions)
        return [tap for tap in (session.outgoing.tap for session in sessions) if isinstance(tap, SessionTap)]

    def _tap(self, session: Session) -> SessionTap:
        from pulsarium.broker.lab.tap import SessionTap

        tap = session.outgoing.tap = SessionTap(self, session, next(self._numbers))
        return tap

    # Hooks

    def opened(self, session: Session) -> None:
        if not self.busy:
            return
        tap = self._tap(session)
        for observer in self.observers:
            observer.opened(tap)

    def connecting(self, session: Session, connect: pb.CommandConnect) -> None:
        self.masks.connecting(session, connect)
