"""What producers and consumers count, and the picture that applications get."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProducerStatistics:
    """What `Producer.statistics` returns: since the producer was made, of all its partitions together."""

    messages_sent: int
    """Messages that have their receipt."""
    bytes_sent: int
    """Bytes of their contents, before compression."""
    send_errors: int
    """Messages that failed after they were numbered."""
    pending_messages: int
    """Messages that have neither now."""
    pending_bytes: int
    """Bytes of the contents of these."""
    reconnections: int
    """How often a partition was opened again."""
    mean_latency: float
    """Seconds from when an entry, which may be a batch, was made until its receipt came, on average; 0 before any."""
    max_latency: float
    """Seconds of the entry that took longest."""


@dataclass(frozen=True)
class ConsumerStatistics:
    """What `Consumer.statistics` returns: since the consumer was made, of all its topics and partitions together."""

    messages_received: int
    """Messages that came for the application, each time they came."""
    bytes_received: int
    """Bytes of their contents, after decompression."""
    queued_messages: int
    """Messages of these that can be received at once."""
    queued_bytes: int
    """Bytes of the contents of these."""
    acknowledgements_sent: int
    """Acknowledgements the broker was told: of an entry, of what is acknowledged of a batch, or cumulative."""
    pending_acknowledgements: int
    """Acknowledgements that wait to go out together."""
    negative_acknowledgements: int
    """Calls of `negative_acknowledge`."""
    reconnections: int
    """How often a topic or partition was subscribed to again."""


@dataclass(slots=True)
class Links:
    """Count what becomes of connections."""

    reconnections: int = 0


@dataclass(slots=True)
class Sent(Links):
    """Count what all partitions of a producer do."""

    messages: int = 0
    bytes: int = 0
    errors: int = 0
    entries: int = 0
    latency: float = 0.0  # of all entries
    max_latency: float = 0.0

    def published(self, messages: int, size: int, latency: float) -> None:
        """Count an entry, or the chunks of one message."""
        self.messages += messages
        self.bytes += size
        self.entries += 1
        self.latency += latency
        if latency > self.max_latency:
            self.max_latency = latency

    def picture(self, pending_messages: int, pending_bytes: int) -> ProducerStatistics:
        """Return all of it as it is now."""
        return ProducerStatistics(
            messages_sent=self.messages,
            bytes_sent=self.bytes,
            send_errors=self.errors,
            pending_messages=pending_messages,
            pending_bytes=pending_bytes,
            reconnections=self.reconnections,
            mean_latency=self.latency / max(1, self.entries),
            max_latency=self.max_latency,
        )


@dataclass(slots=True)
class Received(Links):
    """Count what all topics and partitions of a consumer do."""

    messages: int = 0
    bytes: int = 0
    acknowledgements: int = 0
    refusals: int = 0

    def picture(self, queued_messages: int, queued_bytes: int, pending: int) -> ConsumerStatistics:
        """Return all of it as it is now; `pending`: acknowledgements that wait."""
        return ConsumerStatistics(
            messages_received=self.messages,
            bytes_received=self.bytes,
            queued_messages=queued_messages,
            queued_bytes=queued_bytes,
            acknowledgements_sent=self.acknowledgements,
            pending_acknowledgements=pending,
            negative_acknowledgements=self.refusals,
            reconnections=self.reconnections,
        )
