"""Why a subscription delivers nothing more right now."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """The outcome of a dispatch, in the words of the question "why was this not delivered?"."""

    NO_CONSUMER = "no consumer is connected"
    FAILOVER_DELAY = "the active consumer changed; waiting for activeConsumerFailoverDelayTimeMillis"
    NO_PERMITS = "no consumer has permits left: the client sent no FLOW"
    NOT_WRITABLE = "the connections of the consumers with permits are full: the client does not read"
    LOADING = "the entries are being read back from disk"
    CAUGHT_UP = "everything was delivered"
    FENCED = "the subscription is being reset"
