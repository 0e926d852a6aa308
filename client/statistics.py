"""Counts of producers and consumers, and their statistics for applications."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProducerStatistics:
    """Statistics of a producer since it was made, for all its partitions together."""

    messages_sent: int
    """Messages with a receipt."""
    bytes_sent: int
    """Bytes of their contents, before compression."""
    send_errors: int
    """Messages that failed after they got a sequence id."""
    pending_messages: int
    """Messages that are being sent, without a receipt."""
    pending_bytes: int
    """Bytes of the contents of the pending messages."""
    reconnections: int
    """Number of times that a partition was opened again."""
    mean_latency: float
    """Mean time in seconds from the making of an entry, which may be a batch, until its receipt. 0 without receipts."""
    max_latency: float
    """Longest such time in seconds."""


@dataclass(frozen=True)
class ConsumerStatistics:
    """Statistics of a consumer since it was made, for all its topics and partitions together."""

    messages_received: int
    """Messages that arrived for the application. Each redelivery counts."""
    bytes_received: int
    """Bytes of their contents, after decompression."""
    queued_messages: int
    """Messages that wait in the client to be received."""
    queued_bytes: int
    """Bytes of the contents of the queued messages."""
    acknowledgements_sent: int
    """Acknowledgements sent to the broker. One is for an entry, for a part of a batch, or cumulative."""
    pending_acknowledgements: int
    """Acknowledgements that wait to be sent together."""
    negative_acknowledgements: int
    """Calls of `negative_acknowledge`."""
    reconnections: int
    """Number of times that a topic or partition was subscribed to again."""


@dataclass(slots=True)
class LinkCounts:
    """Count reconnections."""

    reconnections: int = 0


@dataclass(slots=True)
class SentCounts(LinkCounts):
    """Count what all partitions of a producer send."""

    messages: int = 0
    bytes: int = 0
    errors: int = 0
    entries: int = 0
    latency: float = 0.0  # of all entries
    max_latency: float = 0.0

    def published(self, messages: int, size: int, latency: float) -> None:
        """Count an entry, or the chunks of one message. `latency` is in seconds."""
        self.messages += messages
        self.bytes += size
        self.entries += 1
        self.latency += latency
        if latency > self.max_latency:
            self.max_latency = latency

    def picture(self, pending_messages: int, pending_bytes: int) -> ProducerStatistics:
        """Return the statistics of this moment."""
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
class ReceivedCounts(LinkCounts):
    """Count what all topics and partitions of a consumer receive."""

    messages: int = 0
    bytes: int = 0
    acknowledgements: int = 0
    refusals: int = 0

    def picture(self, queued_messages: int, queued_bytes: int, pending: int) -> ConsumerStatistics:
        """Return the statistics of this moment. `pending` is the number of waiting acknowledgements."""
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
