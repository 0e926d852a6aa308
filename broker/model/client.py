"""What the model needs of a connection. Sessions implement it; the model never sees a socket or a frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pulsarium.broker.model.ledger.position import Position

if TYPE_CHECKING:
    from pulsarium.broker.model.ledger.publication import Pending
    from pulsarium.broker.model.topic.producer import Producer


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


class Client(Protocol):
    """One client connection, seen from the model."""

    address: str
    client_version: str
    unstored: int  # messages for non-persistent topics that it sent in this turn

    @property
    def supports_partial_producer(self) -> bool: ...

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

    def send_receipts(self, producer_id: int, entries: Sequence[Pending]) -> None:
        """Send SEND_RECEIPT for each of `entries`."""
        ...

    def send_error(self, producer_id: int, sequence_id: int, code: int, text: str) -> None: ...

    def producer_ready(self, producer: Producer) -> None:
        """It is a waiting producer's turn (WaitForExclusive)."""
        ...

    def error(self, request_id: int, code: int, text: str) -> None: ...

    def active_consumer_change(self, consumer_id: int, is_active: bool) -> None: ...

    def reached_end_of_topic(self, consumer_id: int) -> None:
        """Nothing comes any more from a terminated topic, where the client can bear to hear that."""
        ...

    def close_producer(self, producer_id: int, assigned: Assigned | None = None) -> None:
        """Tell the client that the broker closed its producer, and forget it (cmd 15)."""
        ...

    def close_consumer(self, consumer_id: int, assigned: Assigned | None = None) -> None:
        """Tell the client that the broker closed its consumer, and forget it (cmd 16)."""
        ...

    def forget_producer(self, producer_id: int) -> None:
        """Drop the producer without a word (ExclusiveWithFencing)."""
        ...

    def pause_reading(self) -> None:
        """Take no more commands of it, until `resume_reading` was called as often."""
        ...

    def resume_reading(self) -> None:
        """Go on, with what came meanwhile first."""
        ...

    def check_liveness(self, answered: Callable[[bool], None]) -> None:
        """PING; `answered(True)` on a sign of life, `answered(False)` after the connection was closed for its silence
        (connectionLivenessCheckTimeoutMillis)."""
        ...

    def publish_finished(self, count: int) -> None:
        """Publishes of this connection were answered (maxPendingPublishRequestsPerConnection)."""
        ...

    def close(self, reason: str) -> None: ...
