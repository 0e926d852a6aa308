"""The reasons why a dispatcher stops."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """A reason why dispatch stopped, or the state of one entry, in the words of `pulsarium why`."""

    NO_CONSUMER = "no consumer is connected"
    FAILOVER_DELAY = "the active consumer changed; waiting for activeConsumerFailoverDelayTimeMillis"
    NO_PERMITS = "no consumer has permits left: the client sent no FLOW"
    NOT_WRITABLE = "the connections of the consumers with permits are full: the client does not read"
    CONSUMERS_OWE = "the consumers with permits have reached maxUnackedMessagesPerConsumer"
    SUBSCRIPTION_OWES = "the subscription has reached maxUnackedMessagesPerSubscription"
    LOOK_AHEAD = "too many entries wait for their consumers (keySharedLookAheadMsgInReplayThreshold...)"
    RATE_LIMITED = "a dispatch rate is used up: delivery goes on when its tokens come back"
    RETRYING_LIMIT = "too many messages are negatively acknowledged (keySharedNegativeAckMaxRetryingPositions...)"
    LOADING = "the entries are being read back from disk"
    NEXT_TURN = "other requests come first: delivery goes on in the next turn of the event loop"
    UNREADABLE = "the disk cannot read the next entries; the broker tries again (dispatcherReadFailureBackoff...)"
    BEHIND_CHUNK = "a chunk comes first, and the consumer of its message's first chunk cannot take it, as in Pulsar 4.2"
    CAUGHT_UP = "everything was delivered"
    OPEN_TRANSACTION = "the next entry is in an open transaction, or behind one"
    FENCED = "the subscription is being reset"

    # reasons of one entry
    ACKNOWLEDGED = "the message is acknowledged"
    PENDING_ACK = "an open transaction acknowledged the message"
    COMPACTED_AWAY = (
        "compaction dropped the message, and the consumers read compacted: a cumulative acknowledgement passes it"
    )
    ABORTED = "the transaction of the message was aborted, so it is not delivered"
    DELIVERED = "a consumer has the message and has not acknowledged it yet"
    DELAYED = "the message waits for its deliver_at_time"
    WAITING = "the consumer of the message has no permits, or its connection is full"
    DRAINING = "the former consumer of the key has unacknowledged messages of that key"
    RETRYING = (
        "an earlier message of the key, or of its hash, was negatively acknowledged, and must be acknowledged first"
    )
    RECENTLY_JOINED = "the consumer of the message joined while older messages were unacknowledged, which come first"
    NO_OWNER = "no consumer has the key of the message (STICKY ranges with a gap)"
    ORPHAN_CHUNK = "the entry is a chunk, and no consumer has the first chunk of its message"
    TO_BE_DELIVERED = "the message is next"
    NOT_FOR_CONSUMERS = "it is a marker, or cannot be read: consumers are not given it"

    @property
    def word(self) -> str:
        """Return the name of the reason in the answers of `pulsarium why`."""
        return self.name.lower().replace("_", "-")
