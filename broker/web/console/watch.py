"""The console's memory of a cluster, while HTTP is served."""

from __future__ import annotations

from pulsarium.broker.cluster import Broker, Cluster
from pulsarium.broker.web.console.events import Events
from pulsarium.broker.web.console.listing import Listing
from pulsarium.broker.web.console.samples import Samples
from pulsarium.broker.web.console.waiting import WaitingTimes


class Watch:
    """Samples, events, the list of topics, and since when subscriptions wait. All brokers and pages share them."""

    def __init__(self, cluster: Cluster) -> None:
        self.samples = Samples(cluster)
        self.events = Events(cluster)
        self.waiting = WaitingTimes()
        self.listing = Listing(cluster, self.samples, self.waiting)
        self._sites = 0

    def begin(self) -> None:
        """Watch for one site more."""
        self._sites += 1
        if self._sites == 1:
            self.samples.begin()
            self.events.begin()

    def stop(self) -> None:
        """Watch for one site less. Without any, nothing is watched."""
        self._sites -= 1
        if not self._sites:
            self.samples.stop()
            self.events.stop()


def watch_of(broker: Broker) -> Watch:
    """Return what the console remembers of a broker's cluster."""
    cluster = broker.cluster
    try:
        return cluster.attached(Watch)
    except LookupError:
        return cluster.attach(Watch(cluster))
