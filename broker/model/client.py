"""What the model needs of a connection. Sessions implement it; the model never sees a socket or a frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pulsarium.broker.model.topic.producer import Producer


class Client(Protocol):
    """One client connection, seen from the model."""

    address: str
    client_version: str

    @property
    def supports_partial_producer(self) -> bool: ...

    @property
    def is_writable(self) -> bool:
        """Whether the connection takes more messages now. When it becomes so again, its consumers are dispatched to."""
        ...

    def message(
        self,
        consumer_id: int,
        ledger_id: int,
        entry_id: int,
        partition: int,
        entry: bytes,
        *,
        messages: int,
        redelivery_count: int,
        ack_set: Sequence[int],
        consumer_epoch: int | None,
    ) -> None:
        """Send MESSAGE with a stored entry of `messages` messages."""
        ...

    def send_receipt(
        self, producer_id: int, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int
    ) -> None: ...

    def send_error(self, producer_id: int, sequence_id: int, code: int, text: str) -> None: ...

    def producer_ready(self, producer: Producer) -> None:
        """It is a waiting producer's turn (WaitForExclusive)."""
        ...

    def error(self, request_id: int, code: int, text: str) -> None: ...

    def active_consumer_change(self, consumer_id: int, is_active: bool) -> None: ...

    def close_producer(self, producer_id: int) -> None:
        """Tell the client that the broker closed its producer, and forget it (cmd 15)."""
        ...

    def close_consumer(self, consumer_id: int) -> None:
        """Tell the client that the broker closed its consumer, and forget it (cmd 16)."""
        ...

    def forget_producer(self, producer_id: int) -> None:
        """Drop the producer without a word (ExclusiveWithFencing)."""
        ...

    def check_liveness(self, answered: Callable[[bool], None]) -> None:
        """PING; `answered(True)` on a sign of life, `answered(False)` after the connection was closed for its silence
        (connectionLivenessCheckTimeoutMillis)."""
        ...

    def publish_finished(self) -> None:
        """A publish of this connection was answered (maxPendingPublishRequestsPerConnection)."""
        ...

    def close(self, reason: str) -> None: ...
