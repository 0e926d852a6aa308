"""What the model needs of a connection. Sessions implement it; the model never sees a socket or a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pulsarium.broker.model.errors import Owner
from pulsarium.broker.model.ledger.position import Position


class Delivery(NamedTuple):
    """A stored entry on its way to a consumer."""

    position: Position
    entry: bytes
    messages: int  # that the consumer does not have yet: what it costs in permits
    redelivery_count: int
    ack_set: Sequence[int]  # what of a batch remains; empty: all of it


class Assigned(NamedTuple):
    """The broker that serves a topic from now on, where that is known (PIP-307); of another cluster if the topic has
    `migrated` there (PIP-188)."""

    service_url: str
    service_url_tls: str = ""
    migrated: bool = False


class Client(Owner, Protocol):
    """One client connection, seen from consumers; `topic/producers.py` has what producers need of it."""

    address: str
    client_version: str

    @property
    def room(self) -> int:
        """Bytes of messages that the connection takes now; none when 0 or less. When there is room again, its
        consumers are dispatched to."""
        ...

    def messages(
        self, consumer_id: int, partition: int, consumer_epoch: int | None, deliveries: Sequence[Delivery]
    ) -> None:
        """Send MESSAGE for each of `deliveries`."""
        ...

    def active_consumer_change(self, consumer_id: int, is_active: bool) -> None: ...

    def reached_end_of_topic(self, consumer_id: int) -> None:
        """Nothing comes any more from a terminated topic, where the client can bear to hear that."""
        ...

    def close_consumer(self, consumer_id: int, assigned: Assigned | None = None) -> None:
        """Tell the client that the broker closed its consumer, and forget it (cmd 16)."""
        ...

    def close(self, reason: str) -> None: ...
