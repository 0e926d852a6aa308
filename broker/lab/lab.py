"""The lab of a cluster: one for all its brokers, and nothing of it is in the way until it is used."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from pulsarium.broker.lab.tap import Observer, SessionTap

if TYPE_CHECKING:
    from pulsarium.broker.cluster import Cluster
    from pulsarium.broker.session.session import Session
    from pulsarium.proto.generated import PulsarApi_pb2 as pb


class Lab:
    """Made with its cluster; its parts are made when they are first asked for."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.observers: list[Observer] = []
        self._numbers = itertools.count(1)

    def stop(self) -> None:
        """The cluster closes: what is written to files is written, what runs ends."""

    # observers

    def observe(self, observer: Observer) -> None:
        """Show it every frame from now on, of connections that are open too."""
        self.observers.append(observer)
        self.use()
        for tap in self.taps():
            observer.opened(tap)

    def forget(self, observer: Observer) -> None:
        """Show it nothing more."""
        self.observers.remove(observer)
        self.rest()

    # connections

    def use(self) -> None:
        """Something looks at frames: every connection has a tap now."""
        self.cluster.hooks = self
        for broker in self.cluster.brokers:
            for session in broker.sessions:
                if session.outgoing.tap is None:
                    self._tap(session)

    def rest(self) -> None:
        """Take all taps away if nothing needs them any more: what is not used costs nothing."""
        if self.busy:
            return
        self.cluster.hooks = None
        for tap in self.taps():
            tap.remove()

    @property
    def busy(self) -> bool:
        """Whether anything looks at frames or at connections."""
        return bool(self.observers)

    def taps(self) -> list[SessionTap]:
        """Of the open connections."""
        sessions = (session for broker in self.cluster.brokers for session in broker.sessions)
        return [tap for tap in (session.outgoing.tap for session in sessions) if isinstance(tap, SessionTap)]

    def _tap(self, session: Session) -> SessionTap:
        tap = session.outgoing.tap = SessionTap(self, session, next(self._numbers))
        return tap

    # Hooks

    def opened(self, session: Session) -> None:
        tap = self._tap(session)
        for observer in self.observers:
            observer.opened(tap)

    def connecting(self, session: Session, connect: pb.CommandConnect) -> None:
        pass
