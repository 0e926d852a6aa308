"""The promises of Pulsar that a history can break, one row for each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pulsarium.capture.lint.checker import ALL_RULES
from pulsarium.capture.lint.rule import Requirement, Severity
from pulsarium.proto.commands import Direction

_MESSAGING = "Pulsar docs: messaging concepts"
_BROKER = Direction.BROKER


def _promise(name: str, demands: str, reference: str, mend: str, *, severity: Severity = Severity.ERROR) -> Requirement:
    return Requirement(name, demands, reference, mend, _BROKER, severity)


LOST = _promise(
    "message-lost",
    "A message with a receipt reaches every subscription that existed before it.",
    f"{_MESSAGING}: acknowledgement, message retention",
    "Look for an expiry, a skip or a seek over REST, and for an entry filter.",
)
AGAIN = _promise(
    "delivered-again",
    "The broker delivers a message again only after a negative acknowledgement, a seek or the end of its consumer.",
    f"{_MESSAGING}: acknowledgement, redelivery",
    "Process messages idempotently: every subscription may get a message again.",
)
ACKED = _promise(
    "acknowledged-and-delivered",
    "The broker does not deliver an acknowledged message again to its subscription.",
    f"{_MESSAGING}: acknowledgement",
    "Look for a seek over REST, and for a broker that lost the cursor.",
)
STORED_TWICE = _promise(
    "stored-twice",
    "With deduplication, the broker stores each sequence id of a producer once.",
    "PIP-6",
    "Name the producer, keep its sequence ids over restarts, and turn deduplication on before the first message.",
)
PRODUCER_ORDER = _promise(
    "producer-order",
    "The broker stores the messages of a producer in the order in which the producer sent them.",
    f"{_MESSAGING}: producers, ordering guarantee",
    "Compare the frames of the two receipts.",
)
SUBSCRIPTION_ORDER = _promise(
    "subscription-order",
    "Exclusive and Failover deliver messages in the order of their topic.",
    f"{_MESSAGING}: subscription types",
    "Use Exclusive or Failover where the order matters, and look for two topics of one name.",
)
KEY_ORDER = _promise(
    "key-order",
    "Key_Shared delivers the messages of a key in the order of their topic.",
    "PIP-34",
    "Set the key of each message, and publish with key-based batches or without batches.",
)
KEY_OWNER = _promise(
    "key-of-two-consumers",
    "Key_Shared gives a key to another consumer only when no message of the key is unacknowledged.",
    "PIP-379",
    "Acknowledge a message only when its work is done.",
)
DIRTY = _promise(
    "dirty-read",
    "Consumers get a message of a transaction only after its commit.",
    "PIP-31",
    "Commit the transaction, or publish without one.",
)
ABORTED = _promise(
    "aborted-read",
    "Consumers get no message of an aborted transaction.",
    "PIP-31",
    "Look for a transaction that was ended twice.",
)
CONSUMED_TWICE = _promise(
    "acknowledged-by-two-transactions",
    "Only one committed transaction acknowledges a message.",
    "PIP-31",
    "Abort the transaction when an acknowledgement fails with TransactionConflict.",
)
NEWEST = _promise(
    "compacted-newest-lost",
    "A reader of the compacted topic gets the newest message of each key.",
    "PIP-14",
    "Look for the compaction that removed the message.",
)
EARLY = _promise(
    "delivered-before-its-time",
    "Shared and Key_Shared deliver a delayed message when its time has come, at most one tick before.",
    "PIP-26; delayedDeliveryTickTimeMillis",
    "Pass the broker's delayedDeliveryTickTimeMillis with --delayed-tick.",
)
PERMITS = ALL_RULES["permits-exceeded"]

PROMISES: Mapping[str, Requirement] = MappingProxyType(
    {
        each.name: each
        for each in (
            LOST,
            AGAIN,
            ACKED,
            STORED_TWICE,
            PRODUCER_ORDER,
            SUBSCRIPTION_ORDER,
            KEY_ORDER,
            KEY_OWNER,
            DIRTY,
            ABORTED,
            CONSUMED_TWICE,
            NEWEST,
            EARLY,
            PERMITS,
        )
    }
)
"""Promises by name. The linter declares and checks the rule of permits."""
