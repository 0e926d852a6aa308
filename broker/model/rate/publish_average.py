"""How fast messages came in to a topic of late, for dispatch rates that are relative to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsarium.broker.model.topic.base import Topic


class PublishAverage:
    """Over the last whole interval of statsUpdateFrequencyInSecs, or the time since somebody last asked, if that is
    longer. Costs nothing while nobody asks."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._since = topic.stores.clock.monotonic()
        self._counts = (0, 0)
        self._averages = (0.0, 0.0)

    def messages(self) -> float:
        """A second."""
        return self._now()[0]

    def bytes(self) -> float:
        """A second."""
        return self._now()[1]

    def _now(self) -> tuple[float, float]:
        topic = self._topic
        now = topic.stores.clock.monotonic()
        passed = now - self._since
        if passed >= topic.stores.config.statsUpdateFrequencyInSecs:
            before, self._counts = self._counts, (topic.messages_in, topic.bytes_in)
            self._averages = (self._counts[0] - before[0]) / passed, (self._counts[1] - before[1]) / passed
            self._since = now
        return self._averages
