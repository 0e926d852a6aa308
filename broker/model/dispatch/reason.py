"""Why a subscription delivers nothing more right now."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """The outcome of a dispatch, or the state of one entry, in the words of "why was this not delivered?"."""

    NO_CONSUMER = "no consumer is connected"
    FAILOVER_DELAY = "the active consumer changed; waiting for activeConsumerFailoverDelayTimeMillis"
    NO_PERMITS = "no consumer has permits left: the client sent no FLOW"
    NOT_WRITABLE = "the connections of the consumers with permits are full: the client does not read"
    CONSUMERS_OWE = "the consumers with permits owe maxUnackedMessagesPerConsumer messages"
    SUBSCRIPTION_OWES = "the consumers together owe maxUnackedMessagesPerSubscription messages"
    LOOK_AHEAD = "too many entries wait for their consumers (keySharedLookAheadMsgInReplayThreshold...)"
    LOADING = "the entries are being read back from disk"
    CAUGHT_UP = "everything was delivered"
    FENCED = "the subscription is being reset"

    # of one entry
    ACKNOWLEDGED = "it is acknowledged"
    COMPACTED_AWAY = "compaction did not keep it, and its consumers read compacted: a cumulative ack goes past it"
    DELIVERED = "a consumer has it and did not acknowledge it yet"
    DELAYED = "its deliver_at_time has not come"
    WAITING = "its consumer has no permits, or its connection is full"
    DRAINING = "the consumer that had its key still owes messages of that key"
    NO_OWNER = "no consumer has its key (STICKY ranges with a gap)"
    ORPHAN_CHUNK = "it is a chunk of a message whose first chunk no consumer has"
    TO_BE_DELIVERED = "it is next"
