"""The clocks that a lab steers: the broker's, and one for each namespace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from pulsarium.broker.clock import NamespaceTime, Timeline
from pulsarium.broker.cluster import Cluster
from pulsarium.broker.lab.acts import LabActs, Undo
from pulsarium.broker.lab.steering import ClockError, Steered


class LabClock(Steered):
    """The clock of a cluster. All namespaces follow it that have no time of their own (`of`).

    Keep-alive and the expiry of credentials follow the machine's clock, unless they are included.
    """

    def __init__(self, cluster: Cluster, acts: LabActs | None = None) -> None:
        super().__init__(cluster, cluster.clock, acts)
        clock = self._broker = cluster.clock
        self._cluster = cluster
        self._apart: dict[str, Timeline] = {"keep-alive": clock.keep_alive, "token-expiry": clock.token_expiry}
        self._namespaces: dict[NamespaceTime, NamespaceClock] = {}

    # namespaces

    def of(self, namespace: str) -> NamespaceClock:
        """Return the clock of a namespace. The first call that steers it gives the namespace its own time.

        Raise `ClockError` when the namespace does not exist.
        """
        if namespace not in self._cluster.metadata.namespaces:
            raise ClockError(f"the namespace {namespace} does not exist: create it first")
        self._forget_deleted()
        line = self._broker.of(namespace)
        if line not in self._namespaces:
            self._namespaces[line] = NamespaceClock(self._cluster, self, namespace, self._acts)
        return self._namespaces[line]

    @property
    def namespaces(self) -> Sequence[str]:
        """Return the names of the namespaces that have their own time."""
        return sorted(clock.namespace for clock in self._namespaces.values() if clock.is_own)

    def _forget_deleted(self) -> None:
        self._namespaces = {line: clock for line, clock in self._namespaces.items() if line.exists}

    @property
    def included(self) -> Sequence[str]:
        """Return the names of the included timers."""
        return sorted(name for name, line in self._apart.items() if line in self._others)

    def particulars(self) -> Mapping[str, object]:
        """Return what only this kind of clock has, by its names over REST."""
        return {"included": self.included, "namespaces": self.namespaces}

    # included timers

    def include(self, *names: str) -> None:
        """Put "keep-alive" or "token-expiry" under this clock too. Their timers keep the time that they have left."""
        for name in self._known(names):
            line = self._apart[name]
            if line not in self._others:
                self._others.append(line)
            if self._clock.frozen:
                line.freeze()
            line.have_wall_of(self._clock)

    def exclude(self, *names: str) -> None:
        """Return the named timers to the machine's clock."""
        for name in self._known(names):
            line = self._apart[name]
            if line in self._others:
                self._others.remove(line)
            line.resume()
            line.have_wall_of(self._clock.machine)

    def _known(self, names: Sequence[str]) -> Sequence[str]:
        for name in names:
            if name not in self._apart:
                raise ClockError(
                    f"{name!r} cannot be included in the clock; these can: {', '.join(sorted(self._apart))}"
                )
        return names

    def reset(self) -> None:
        """Return to the machine's time, and exclude all timers. Namespaces with their own time keep it.

        A running advance ends where it is. Timers keep the time that they have left.
        """
        if self.offset_ms or self.frozen:
            self._note("returned the clock to the machine's time", "reset")
        super().reset()
        self.exclude(*self.included)
        self._run()
        self._clock.have_wall_of(self._clock.machine)


class NamespaceClock(Steered):
    """The clock of a namespace: of its topics, their subscriptions and all their timers.

    Until the first call that steers it, and after `reset`, the namespace follows the broker's clock.
    """

    def __init__(self, cluster: Cluster, broker: LabClock, namespace: str, acts: LabActs | None = None) -> None:
        line = cluster.clock.of(namespace)
        super().__init__(cluster, line, acts)
        self.query = f"?namespace={quote(namespace, safe='')}"
        self.namespace = namespace
        self._line = line
        self._all = cluster.clock
        self._broker = broker

    @property
    def is_own(self) -> bool:
        """Return whether the namespace has its own time, and does not follow the broker's clock."""
        return not self._line.follows(self._all)

    def particulars(self) -> Mapping[str, object]:
        """Return what only this kind of clock has, by its names over REST."""
        return {"namespace": self.namespace, "own": self.is_own}

    @property
    def frozen(self) -> bool:
        return self._frozen if self.is_own else self._broker.frozen

    def _begin(self) -> None:
        if not self._line.exists:
            raise ClockError(f"the namespace {self.namespace} was deleted: take the clock of an existing one")
        if not self.is_own:
            self._all.part(self._line)
            self._line.on_joined = self._joined
            self._frozen = self._broker.frozen
            if not self._frozen:  # an advance of the broker's clock freezes that clock for a moment
                self._line.resume()

    def include(self, *names: str) -> None:
        """Raise `ClockError`, because no timer outside the namespace can be included in its clock."""
        raise ClockError(
            f"{' and '.join(names)} belong to connections, which no namespace has: steer the broker's clock"
        )

    exclude = include

    def reset(self) -> None:
        """Follow the broker's clock again. A running advance ends where it is.

        Timers keep the time that they have left.
        """
        if self.is_own:
            self._note("returned the clock to the broker's time", "reset")
        self._all.join(self._line)

    def _note(self, what: str, command: str, undo: Undo | None = None) -> None:
        super()._note(f"{what} of {self.namespace}", f"--namespace {self.namespace} {command}", undo)

    def _joined(self) -> None:
        super().reset()
        self._frozen = False
