"""Measure the load of the segments of a scalable topic, as Pulsar's brokers report it to the controller."""

from __future__ import annotations

from pulsarium.broker.model.scalable.auto_scale import SegmentLoad
from pulsarium.broker.model.scalable.topics import ScalableTopic
from pulsarium.broker.model.topic.base import Topic

Counts = tuple[int, int, int, int]  # messages in, bytes in, messages out, bytes out
NONE: Counts = (0, 0, 0, 0)


class Meter:
    """The loads of the active segments. A load changes only when a rate changes by more than a part of itself."""

    def __init__(self, topic: ScalableTopic, threshold: float) -> None:
        self.loads: dict[int, SegmentLoad] = {}
        self._topic = topic
        self._threshold = threshold
        self._counts: dict[int, tuple[Topic | None, Counts]] = {}
        self._measured_ms: int | None = None

    def measure(self, now_ms: int) -> None:
        """Read the counters of all active segments, and compute rates since the last time."""
        active = {each.id: self._topic.loaded_segment(each) for each in self._topic.layout.active()}
        counts = {number: (topic, NONE if topic is None else _counts(topic)) for number, topic in active.items()}
        before, self._counts = self._counts, counts
        begun_ms, self._measured_ms = self._measured_ms, now_ms
        if begun_ms is None or begun_ms >= now_ms:
            return
        seconds = (now_ms - begun_ms) / 1000
        loads: dict[int, SegmentLoad] = {}
        for number, (topic, count) in counts.items():
            old_topic, old = before.get(number, (topic, NONE))
            if old_topic is not topic:  # loaded again, so the counters began at 0
                old = NONE
            rates = tuple((new - former) / seconds for new, former in zip(count, old, strict=True))
            known = self.loads.get(number)
            same = known is not None and all(map(self._is_same, known.rates, rates))
            loads[number] = known if known is not None and same else SegmentLoad(rates, now_ms)  # type: ignore[arg-type]
        self.loads = loads

    def _is_same(self, known: float, rate: float) -> bool:
        return abs(rate - known) <= self._threshold * max(known, 1.0)


def _counts(topic: Topic) -> Counts:
    subscriptions = topic.subscriptions.values()
    return (
        topic.messages_in,
        topic.bytes_in,
        topic.messages_out_before + sum(each.messages_out for each in subscriptions),
        topic.bytes_out_before + sum(each.bytes_out for each in subscriptions),
    )
