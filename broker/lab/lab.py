"""The lab of a cluster, shared by all its brokers. Parts that are not used cost nothing."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.lab.acts import LabActs

if TYPE_CHECKING:
    from pulsarium.broker.lab.capture import Captures
    from pulsarium.broker.lab.clock import LabClock
    from pulsarium.broker.lab.connections import Connections
    from pulsarium.broker.lab.expectations import Changes
    from pulsarium.broker.lab.faults import Faults
    from pulsarium.broker.lab.linter import Linter
    from pulsarium.broker.lab.masks import Masks
    from pulsarium.broker.lab.namespaces import Leaving
    from pulsarium.broker.lab.state import StateControl
    from pulsarium.broker.lab.tap import Taps
    from pulsarium.broker.lab.why import Why


class Lab:
    """The parts of the lab, each created at its first use."""

    def __init__(self, cluster: Cluster, folder: Path | None = None, connections: Connections | None = None) -> None:
        """Create the lab of a cluster. `connections` are those that it taps; by default the cluster's sessions."""
        self.cluster = cluster
        self._connections = connections
        self.folder = folder
        """The folder below which HTTP callers may write files, or None to forbid files."""
        self.acts = cluster.attach(LabActs(cluster))

    def stop(self) -> None:
        """End all captures, because the cluster closes."""
        if "captures" in vars(self):
            self.captures.stop()

    def reset(self) -> None:
        """Remove faults and masks, and reset the clock. Captures and the linter stay."""
        self.faults.clear()
        self.masks.clear()
        self.clock.reset()

    # parts

    @cached_property
    def taps(self) -> Taps:
        """Return the taps on connections, which faults, captures and the linter share."""
        from pulsarium.broker.lab.tap import Taps

        if self._connections is not None:
            return Taps(self.cluster, self._connections)
        from pulsarium.broker.lab.connections import ClusterConnections

        return Taps(self.cluster, ClusterConnections(self.cluster))

    @cached_property
    def clock(self) -> LabClock:
        """Return the clock that freezes and advances time."""
        from pulsarium.broker.lab.clock import LabClock

        return LabClock(self.cluster, self.acts)

    @cached_property
    def faults(self) -> Faults:
        """Return the rules that act on frames."""
        from pulsarium.broker.lab.faults import Faults

        return Faults(self.taps)

    @cached_property
    def captures(self) -> Captures:
        """Return the captures of frames, in files or in memory."""
        from pulsarium.broker.lab.capture import Captures

        return Captures(self.taps)

    @cached_property
    def masks(self) -> Masks:
        """Return the masks that change the broker for some clients."""
        from pulsarium.broker.lab.masks import Masks

        return Masks(self.cluster)

    @cached_property
    def linter(self) -> Linter:
        """Return the linter that finds mistakes of clients."""
        from pulsarium.broker.lab.linter import Linter

        return Linter(self.taps)

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
    def state(self) -> StateControl:
        """Return the state, to reset, save, restore or seed it."""
        from pulsarium.broker.lab.state import StateControl

        return StateControl(self.cluster, self.reset)

    def why(
        self,
        topic: str,
        subscription: str | None = None,
        message_id: str | None = None,
        producer: str | None = None,
    ) -> Why:
        """Explain why a message was not delivered. Without an id, explain the next one. Raise `WhyError`.

        For a scalable topic without a subscription, explain its scaling. With `producer`, explain why that producer, or
        any new one for "", cannot be created or cannot publish.
        """
        from pulsarium.broker.lab.why import explain

        return explain(self.cluster, topic, subscription, message_id, producer)
