"""The lab of a cluster: one for all its brokers, and nothing of it is in the way until it is used."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pulsarium.broker.cluster import Cluster
    from pulsarium.broker.lab.capture import Captures
    from pulsarium.broker.lab.clock import LabClock
    from pulsarium.broker.lab.faults import Faults
    from pulsarium.broker.lab.linter import Linter
    from pulsarium.broker.lab.masks import Masks
    from pulsarium.broker.lab.state import State
    from pulsarium.broker.lab.tap import Observer, SessionTap
    from pulsarium.broker.lab.why import Why
    from pulsarium.broker.session.session import Session
    from pulsarium.proto.generated import PulsarApi_pb2 as pb


class Lab:
    """Made with its cluster; its parts are made when they are first asked for."""

    def __init__(self, cluster: Cluster, folder: Path | None = None) -> None:
        self.cluster = cluster
        self.folder = folder
        """Return the folder below which HTTP callers may have files written; None: nowhere."""
        self.observers: list[Observer] = []
        self._numbers = itertools.count(1)

    def stop(self) -> None:
        """The cluster closes: what is written to files is written, what runs ends."""
        if "captures" in vars(self):
            self.captures.stop()

    # parts

    @cached_property
    def clock(self) -> LabClock:
        """To freeze, to advance."""
        from pulsarium.broker.lab.clock import LabClock

        return LabClock(self.cluster)

    @cached_property
    def faults(self) -> Faults:
        """Rules for frames."""
        from pulsarium.broker.lab.faults import Faults

        return Faults(self)

    @cached_property
    def captures(self) -> Captures:
        """Of every frame, in files or in memory."""
        from pulsarium.broker.lab.capture import Captures

        return Captures(self)

    @cached_property
    def masks(self) -> Masks:
        """What some clients see of the broker."""
        from pulsarium.broker.lab.masks import Masks

        return Masks(self)

    @cached_property
    def linter(self) -> Linter:
        """What clients do wrong."""
        from pulsarium.broker.lab.linter import Linter

        return Linter(self)

    @cached_property
    def state(self) -> State:
        """All that is kept: forget it, write it to a file, take it from one."""
        from pulsarium.broker.lab.state import State

        return State(self)

    def why(self, topic: str, subscription: str, message_id: str | None = None) -> Why:
        """Why a message was not delivered, or what became of it; without an id: the next one. Raises WhyError."""
        from pulsarium.broker.lab.why import explain

        return explain(self.cluster, topic, subscription, message_id)

    # observers

    def observe(self, observer: Observer) -> None:
        """Show it every frame from now on, of connections that are open too."""
        self.observers.append(observer)
        self.use()
        for tap in self.taps():
            observer.opened(tap)

    def forget(self, observer: Observer) -> None:
        """Show it nothing more."""
        self.observers = [each for each in self.observers if each is not observer]  # it may go while all are shown one
        self.rest()

    # connections

    def attend(self) -> None:
        """Something looks at new connections."""
        self.cluster.hooks = self

    def use(self) -> None:
        """Something looks at frames: every connection has a tap now."""
        self.attend()
        for broker in self.cluster.brokers:
            for session in broker.sessions:
                if session.outgoing.tap is None:
                    self._tap(session)

    def rest(self) -> None:
        """Take all taps away if nothing needs them any more: what is not used costs nothing."""
        if not self.busy:
            for tap in self.taps():
                tap.remove()
            if not self.masks.worn:
                self.cluster.hooks = None

    @property
    def busy(self) -> bool:
        """Whether anything looks at frames."""
        return bool(self.observers or self.faults.rules)

    def taps(self) -> list[SessionTap]:
        """Of the open connections."""
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
