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
    RATE_LIMITED = "rate limited until the tokens of a dispatch rate come back"
    LOADING = "the entries are being read back from disk"
    UNREADABLE = "the disk cannot read what comes next; it is tried again (dispatcherReadFailureBackoff...)"
    BEHIND_CHUNK = (
        "a chunk comes first that the consumer of its message's first chunk cannot be given, as in Pulsar 4.2"
    )
    CAUGHT_UP = "everything was delivered"
    OPEN_TRANSACTION = "what comes next is in an open transaction, or behind one"
    FENCED = "the subscription is being reset"

    # of one entry
    ACKNOWLEDGED = "it is acknowledged"
    PENDING_ACK = "a transaction acknowledged it that is not over"
    COMPACTED_AWAY = "compaction did not keep it, and its consumers read compacted: a cumulative ack goes past it"
    ABORTED = "its transaction was aborted: consumers are not given it"
    DELIVERED = "a consumer has it and did not acknowledge it yet"
    DELAYED = "its deliver_at_time has not come"
    WAITING = "its consumer has no permits, or its connection is full"
    DRAINING = "the consumer that had its key still owes messages of that key"
    RECENTLY_JOINED = "its consumer joined before older messages were acknowledged, which come first"
    NO_OWNER = "no consumer has its key (STICKY ranges with a gap)"
    ORPHAN_CHUNK = "it is a chunk of a message whose first chunk no consumer has"
    TO_BE_DELIVERED = "it is next"
