"""One transaction, as its coordinator knows it and keeps it, and what it ends on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from pulsarium.proto.message_id import TxnId


class Status(Enum):
    """Pulsar's TxnStatus, without those of a transaction that is over: nothing is left of it then."""

    OPEN = "OPEN"
    COMMITTING = "COMMITTING"
    ABORTING = "ABORTING"


class Part(NamedTuple):
    """Where a transaction did something: a topic that it published to, or a subscription that it acknowledged on."""

    topic: str
    subscription: str | None = None

    @property
    def order(self) -> tuple[bool, str, str]:
        """Acknowledgements end before what was published becomes visible, as in Pulsar."""
        return self.subscription is None, self.topic, self.subscription or ""


@dataclass(frozen=True, slots=True)
class Transaction:
    """A value: what changes makes another one. `parts` are those that are not ended yet."""

    least: int
    opened_ms: int
    timeout_ms: int
    owner: str | None  # role of who opened it; None: anybody's
    status: Status = Status.OPEN
    parts: frozenset[Part] = frozenset()

    @property
    def topics(self) -> list[str]:
        """What it published to."""
        return sorted(part.topic for part in self.parts if part.subscription is None)

    @property
    def subscriptions(self) -> list[tuple[str, str]]:
        """What it acknowledged on: topic and subscription."""
        return sorted((part.topic, part.subscription) for part in self.parts if part.subscription is not None)

    def to_bytes(self) -> bytes:
        """As it is stored, where its number is part of the path."""
        parts = sorted(self.parts, key=lambda part: part.order)
        return json.dumps([self.opened_ms, self.timeout_ms, self.owner, self.status.value, parts]).encode()

    @classmethod
    def from_bytes(cls, least: int, value: bytes) -> Transaction:
        """From the store."""
        opened_ms, timeout_ms, owner, status, parts = json.loads(value)
        return cls(least, opened_ms, timeout_ms, owner, Status(status), frozenset(Part(*part) for part in parts))


class Participant(Protocol):
    """A topic's transaction buffer, or the pending acknowledgements of a subscription."""

    def end(self, txn: TxnId, *, commit: bool, low_watermark: int) -> None:
        """The transaction is over; nothing happens where it left nothing. What changes is noted for this turn's commit.

        All transactions of the same coordinator up to `low_watermark` are over too. Raises BrokerServiceError where it
        cannot be done now, and then nothing changed.
        """
