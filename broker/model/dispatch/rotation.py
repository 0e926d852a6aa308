"""Whose turn it is: round robin by priority level, however many consumers there are."""

from __future__ import annotations

from pulsarium.broker.model.subscription.consumer import Consumer


class Level:
    """The consumers of one priority level, in the order they came; a bit for each that may be ready."""

    __slots__ = ("consumers", "following", "index_of", "ready")

    def __init__(self) -> None:
        self.consumers: list[Consumer] = []
        self.index_of: dict[Consumer, int] = {}
        self.ready = 0
        self.following = 0  # index from which the next one is looked for

    def next(self) -> Consumer | None:
        while self.ready:
            later = self.ready >> self.following
            if not later:
                self.following = 0
                continue
            index = self.following + (later & -later).bit_length() - 1
            consumer = self.consumers[index]
            if consumer.can_receive:
                self.following = index + 1
                return consumer
            self.ready &= ~(1 << index)  # until it is ready again
        return None


class Rotation:
    """Gives consumers of the lowest level a turn first (B-04). Who is found unable is not looked at again until
    `ready` says so, so that a turn costs the same with one consumer and with a thousand."""

    def __init__(self) -> None:
        self._levels: dict[int, Level] = {}  # in order

    def add(self, consumer: Consumer) -> None:
        level = self._levels.get(consumer.priority_level)
        if level is None:
            self._levels[consumer.priority_level] = level = Level()
            self._levels = dict(sorted(self._levels.items()))
        level.index_of[consumer] = len(level.consumers)
        level.consumers.append(consumer)

    def remove(self, consumer: Consumer) -> None:
        """The turn goes on at the same index, as in Pulsar, even where that passes over somebody."""
        level = self._levels[consumer.priority_level]
        index = level.index_of[consumer]
        del level.consumers[index]
        level.index_of = {each: number for number, each in enumerate(level.consumers)}
        level.ready = (level.ready & ((1 << index) - 1)) | ((level.ready >> (index + 1)) << index)
        if not level.consumers:
            del self._levels[consumer.priority_level]

    def ready(self, consumer: Consumer) -> None:
        """A consumer may be able to receive."""
        level = self._levels[consumer.priority_level]
        level.ready |= 1 << level.index_of[consumer]

    def next(self) -> Consumer | None:
        """The consumer whose turn it is; None when none can receive."""
        for level in self._levels.values():
            if level.ready and (consumer := level.next()) is not None:
                return consumer
        return None
