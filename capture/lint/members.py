"""Producers and consumers of one connection, as its frames show them, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, ValuesView
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from pulsarium.proto.generated.PulsarApi_pb2 import CommandSubscribe

K = TypeVar("K")
V = TypeVar("V")


class Bounded(Generic[K, V]):
    """A dict of at most `most` keys, which forgets the oldest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[K, V] = {}
        self.whole = True
        """Whether no key was forgotten yet."""

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def first(self) -> K | None:
        """Return the oldest key."""
        return next(iter(self._values), None)

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def values(self) -> ValuesView[V]:
        return self._values.values()

    def get(self, key: K | None) -> V | None:
        return None if key is None else self._values.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self._values[key] = value
        if len(self._values) > self._most:
            del self._values[next(iter(self._values))]
            self.whole = False

    def pop(self, key: K) -> V | None:
        return self._values.pop(key, None)


Position = tuple[int, int]
"""Ledger id and entry id, signed."""

_MOST_CHUNKED = 1_000
"""Most chunked messages of a producer in flight."""


class Phase(Enum):
    """Phase of a producer or a consumer, seen from the wire."""

    OPENING = 1
    OPEN = 2
    CLOSED_BY_BROKER = 3
    """Closed or refused by the broker. Frames that the client sent before it knew are no fault."""
    CLOSED_BY_CLIENT = 4
    """Closed by the client, and confirmed by the broker."""


@dataclass(slots=True)
class Chunked:
    """A chunked message whose last chunk is missing.

    `size` counts the bytes so far, or is None without the first chunk.
    """

    chunk: int
    chunks: int
    total: int
    size: int | None


@dataclass(slots=True)
class Producer:
    """A producer of a connection.

    opened: number of the frame of its last PRODUCER. named_by_application: whether the application chose the name, and
    not the broker or client. name, topic_epoch: those of the latest PRODUCER_SUCCESS. was_open: whether it was open
    since its last PRODUCER. closed_ns: time of the broker's close. closing: whether the client sent CLOSE_PRODUCER.
    """

    topic: str
    opened: int
    named_by_application: bool = True
    phase: Phase = Phase.OPENING
    last_sequence: int = -1
    name: str = ""
    epoch: int = 0
    topic_epoch: int | None = None
    was_open: bool = False
    closed_ns: int = 0
    closing: bool = False
    chunked: Bounded[str, Chunked] = field(default_factory=lambda: Bounded(_MOST_CHUNKED))


@dataclass(slots=True)
class Consumer:
    """A consumer of a connection.

    permits: the permits that are left by the broker's count; negative after a batch with more messages than permits.
    entries: the number of entries that the broker may still send. One permit is enough for a whole batch.
    epoch: greatest consumer_epoch of the client. ending: command with which the client ends the consumer.
    cumulative: position of the last cumulative acknowledgement.
    """

    topic: str
    subscription: str
    type: int
    opened: int
    phase: Phase = Phase.OPENING
    permits: int = 0
    entries: int = 0
    epoch: int = 0
    closed_ns: int = 0
    ending: str = ""
    seeking: bool = False
    cumulative: Position = (-1, -1)

    @property
    def type_name(self) -> str:
        return CommandSubscribe.SubType.Name(CommandSubscribe.SubType.ValueType(self.type))

    @property
    def shared(self) -> bool:
        return self.type in (CommandSubscribe.Shared, CommandSubscribe.Key_Shared)
