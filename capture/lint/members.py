"""Producers and consumers of one connection, as its frames show them, in memory that has an end."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from pulsarium.proto.generated.PulsarApi_pb2 import CommandSubscribe

K = TypeVar("K")
V = TypeVar("V")


class Bounded(Generic[K, V]):
    """A dict that forgets its oldest keys when it has more than `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[K, V] = {}
        self.whole = True
        """Whether nothing was forgotten yet."""

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def first(self) -> K | None:
        """The oldest key."""
        return next(iter(self._values), None)

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
"""Chunked messages that a producer may have under way."""


class Phase(Enum):
    """Of a producer or a consumer, seen from the wire."""

    OPENING = 1
    OPEN = 2
    CLOSED_BY_BROKER = 3
    """Also: refused. What the client had sent before it heard of it is no fault of it."""
    CLOSED_BY_CLIENT = 4
    """And the broker has said so."""


@dataclass(slots=True)
class Chunked:
    """A message that comes in chunks. size: bytes so far; None where the first chunk was not seen."""

    chunk: int
    chunks: int
    total: int
    size: int | None


@dataclass(slots=True)
class Producer:
    """opened: the number of the frame that asks for it. named_by_application: not by the broker, or the client.
    name: given by PRODUCER_SUCCESS, also an earlier one. topic_epoch: the same. was_open: whether it ever was since
    its last PRODUCER. closed_ns: when the broker closed it. closing: its client has sent CLOSE_PRODUCER.
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
    """permits: as the broker counts them, below 0 after a batch that had more messages than were left.
    entries: how many more the broker may send: it decides by permits, but sends by the entry.
    epoch: the greatest consumer_epoch of its client. ending: the command by which its client ends it.
    cumulative: what its client has acknowledged that way.
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
