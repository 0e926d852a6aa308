"""Explain why an unacknowledged message was not delivered: the dispatcher's reason, with names and numbers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from pulsarium.broker.clock import instant_text
from pulsarium.broker.lab.why.answer import Why
from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.transactions import transaction_of
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.storage.interface import StorageError
from pulsarium.proto.entry import visible_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.numbers import signed


class Facts:
    """Facts about an entry and its subscription."""

    def __init__(self, subscription: PersistentSubscription, position: Position) -> None:
        self.subscription = subscription
        self.position = position
        self.dispatcher = subscription.dispatcher
        self.cursor = subscription.cursor

    @cached_property
    def metadata(self) -> pb.MessageMetadata | None:
        """Return the metadata, or None for a marker or an unreadable entry, which consumers do not receive."""
        return visible_metadata(self.subscription.topic.ledger.read_now(self.position))

    @cached_property
    def damage(self) -> str:
        """Return why the entry cannot be read, or ""."""
        try:
            self.subscription.topic.ledger.read_now(self.position)
        except StorageError as error:
            return str(error)
        return ""

    @cached_property
    def transaction(self) -> TxnId | None:
        """Return the transaction that published the entry, or None."""
        return transaction_of(self.subscription.topic.ledger.read_now(self.position))

    @property
    def batch_size(self) -> int:
        """Return how many messages the entry has."""
        return 1 if self.metadata is None else max(1, self.metadata.num_messages_in_batch)

    @property
    def active(self) -> Consumer | None:
        """Return the active consumer of an Exclusive or Failover subscription, or None."""
        return None if self.dispatcher is None else self.dispatcher.active

    @cached_property
    def key_hash(self) -> int | None:
        """Return the hash of the message's key where keys choose the consumer, or None."""
        return None if self.dispatcher is None or self.metadata is None else self.dispatcher.hash_of(self.metadata)

    @cached_property
    def holder(self) -> Consumer | None:
        """Return the consumer that has the entry, or would receive it, or None."""
        dispatcher = self.dispatcher
        if dispatcher is None:
            return None
        found = dispatcher.holder(self.position) or self.active
        if found is None and isinstance(dispatcher, KeySharedDispatcher) and self.key_hash is not None:
            found = dispatcher.selector.select(self.key_hash)
        return found

    @cached_property
    def again(self) -> bool:
        """Return whether the entry was delivered before and waits for redelivery."""
        return self.dispatcher is not None and self.dispatcher.will_redeliver(self.position)

    @cached_property
    def before(self) -> int:
        """Return how many entries are read before this entry; 0 when this entry was read already."""
        ledger, read = self.subscription.topic.ledger, self.subscription.reads_on_at
        return max(0, ledger.count_after(ledger.previous(read), self.position) - 1) if self.position > read else 0

    # as JSON

    def of_cursor(self) -> dict[str, Any]:
        return {
            "type": self.subscription.type_name,
            "markDeletePosition": str(self.cursor.mark_delete),
            "readPosition": str(self.cursor.read_position),
        }

    def of_message(self) -> dict[str, Any]:
        metadata, dispatcher = self.metadata, self.dispatcher
        if metadata is None:
            return {}
        known: dict[str, Any] = {"producerName": metadata.producer_name, "sequenceId": metadata.sequence_id}
        known["publishTime"] = instant_text(signed(metadata.publish_time))
        if metadata.HasField("num_messages_in_batch"):
            known["batchSize"] = metadata.num_messages_in_batch
        if metadata.HasField("partition_key"):
            known["key"] = metadata.partition_key
        if self.key_hash is not None:
            known["keyHash"] = self.key_hash
        if dispatcher is not None and (count := dispatcher.redeliveries.get(self.position, 0)):
            known["redeliveryCount"] = count
        return known

    def of_consumers(self, reason: Reason) -> dict[str, Any]:
        active = self.active
        known: dict[str, Any] = {"consumers": [consumer_json(each) for each in self.subscription.consumers]}
        if active is not None:
            known["activeConsumer"] = active.name
            known["standby"] = [each.name for each in self.subscription.consumers if each is not active]
        if self.holder is not None and reason is not Reason.NO_OWNER:
            known["consumer"] = self.holder.name
        return known


def consumer_json(consumer: Consumer) -> dict[str, Any]:
    """Return the state of a consumer that decides whether the broker sends it messages."""
    return {
        "name": consumer.name,
        "address": str(consumer.client.address),
        "permits": consumer.permits,
        "unacked": consumer.unacked,
        "blocked": consumer.blocked,
        "writable": consumer.client.room > 0,
    }


def present(reason: Reason, facts: Facts, batch_index: int = -1) -> Why:
    """Return the answer for the dispatcher's reason, about an entry or a message in it."""
    details = facts.of_cursor() | facts.of_message() | facts.of_consumers(reason)
    if facts.metadata is None and reason is not Reason.COMPACTED_AWAY:
        return Why(Reason.NOT_FOR_CONSUMERS.word, Reason.NOT_FOR_CONSUMERS.value, details)
    if reason is Reason.PENDING_ACK:
        return _pending_ack(facts, details, batch_index)
    text = _SENTENCES.get(reason, _plainly)(facts, details, reason)
    if facts.again:
        details["redelivery"] = True
        text = f"it waits to be delivered again: {text}"
    if facts.before:
        details["entriesBefore"] = facts.before
        text += f"; {_count(facts.before, 'entry comes', 'entries come')} before it"
    return Why(reason.word, text, details)


def present_damage(damage: str, facts: Facts) -> Why:
    """Return the answer for an entry that cannot be read."""
    skips = facts.subscription.topic.stores.config.autoSkipNonRecoverableData
    after = "it is skipped when its turn comes" if skips else "autoSkipNonRecoverableData=true would skip it"
    details = facts.of_cursor() | {"damage": damage}
    return Why(Reason.UNREADABLE.word, f"it cannot be read from disk ({damage}); {after}", details)


def _pending_ack(facts: Facts, details: dict[str, Any], batch_index: int) -> Why:
    assert facts.subscription.pending_acks is not None
    by = facts.subscription.pending_acks.acknowledged_by(facts.position, batch_index)
    details["transactions"] = [str(txn) for txn in by]
    who = _count(len(by), "open transaction", "open transactions")
    return Why(Reason.PENDING_ACK.word, f"{who} acknowledged it: {', '.join(details['transactions'])}", details)


def _plainly(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    return reason.value


def _no_consumer(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    if not facts.subscription.consumers:
        return reason.value
    return "the cursor was moved, and the consumers that stayed are passive until one joins or leaves"


def _no_permits(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    if len(facts.subscription.consumers) == 1 or facts.active is not None:
        who = facts.active or next(iter(facts.subscription.consumers))
        return f"{_called(who)} has no permits left: its client sent no FLOW"
    return f"none of the {len(facts.subscription.consumers)} consumers has permits left: their clients sent no FLOW"


def _not_writable(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    full = [each for each in facts.subscription.consumers if each.permits > 0 and each.client.room <= 0]
    return f"the connection of {_names(full)} is full: the client does not read"


def _consumers_owe(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    details["limit"] = limit = facts.subscription.topic.policies.max_unacked_per_consumer
    owing = [each for each in facts.subscription.consumers if each.blocked]
    return f"{_names(owing)} has {limit} or more unacknowledged messages (maxUnackedMessagesPerConsumer)"


def _subscription_owes(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    policies = facts.subscription.topic.policies
    details["limit"] = limit = policies.max_unacked_per_subscription
    details["unacked"] = unacked = sum(each.unacked for each in facts.subscription.consumers)
    return f"its consumers have {unacked} unacknowledged messages; maxUnackedMessagesPerSubscription is {limit}"


def _failover(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    name = _called(facts.active) if facts.active is not None else "a consumer"
    details["delayMs"] = delay = facts.subscription.topic.stores.config.activeConsumerFailoverDelayTimeMillis
    return f"{name} became active, and is served only after activeConsumerFailoverDelayTimeMillis ({delay} ms)"


def _delivered(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    holder = facts.holder
    if holder is None:
        return "it was delivered, and not acknowledged yet"
    details["lastDelivery"] = last = instant_text(holder.consumed_ms)
    return f"{_called(holder)} has it and has not acknowledged it; the last delivery to this consumer was at {last}"


def _delayed(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    assert facts.metadata is not None
    due = facts.metadata.deliver_at_time
    left = (due - facts.subscription.topic.now_ms()) / 1000
    details["deliverAt"], details["secondsLeft"] = instant_text(due), round(left, 3)
    if left <= 0:
        return f"it was delayed until {details['deliverAt']}; the next tick (delayedDeliveryTickTimeMillis) delivers it"
    return f"it is delayed until {details['deliverAt']}, which is in {_spoken(left)}"


def _waiting(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    holder = facts.holder
    assert holder is not None
    what = "chunks of the same message" if facts.key_hash is None else f"key hash {facts.key_hash}"
    return f"it is for {_called(holder)}, which has the {what}, and {_why_not(holder)}"


def _why_not(consumer: Consumer) -> str:
    if consumer.blocked:
        return "has too many unacknowledged messages (maxUnackedMessagesPerConsumer)"
    if consumer.permits <= 0:
        return "has no permits left"
    return (
        "does not read from its connection" if consumer.client.room <= 0 else "waits for the tokens of a dispatch rate"
    )


def _draining(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    assert isinstance(facts.dispatcher, KeySharedDispatcher)
    assert facts.key_hash is not None
    draining = facts.dispatcher.key_owners.draining[facts.key_hash].consumer
    unacked, _ = facts.dispatcher.key_owners.draining_of(draining)[facts.key_hash]
    details["drainingConsumer"], details["unacked"] = draining.name, unacked
    mine = facts.holder.name if facts.holder is not None else "nobody"
    return (
        f"its key hash {facts.key_hash} belongs to {mine} now, but {_called(draining)} has not acknowledged "
        f"{_count(unacked, 'entry', 'entries')} of it yet"
    )


def _no_owner(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    if facts.active is not None:
        alone = _called(facts.active)
        return f"its key hash {facts.key_hash} is outside of the hash ranges of {alone}, the only consumer"
    return f"no consumer has its key hash {facts.key_hash}: the STICKY ranges leave a gap"


def _open_transaction(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    txn, first = next(iter(facts.subscription.topic.ledger.transactions.ongoing.items()))
    details["transaction"], details["transactionBegins"] = str(txn), str(first)
    if first == facts.position:
        return f"it was published in transaction {txn}, which is open"
    where = "in it or behind it" if facts.transaction == txn else "behind it"
    return f"transaction {txn} is open, which has an entry at {first}: consumers read nothing {where} before its end"


def _aborted(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    details["transaction"] = str(facts.transaction)
    return f"it was published in transaction {facts.transaction}, which was aborted: consumers are not given it"


def _until(facts: Facts, end: float) -> tuple[float, str]:
    """Return the seconds until `end` in the clock's monotonic seconds, and its wall time as text."""
    clock = facts.subscription.topic.stores.clock
    left = end - clock.monotonic()
    return left, instant_text(clock.now_ms() + round(left * 1000))


def _rate_limited(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    throttle = facts.subscription.throttle
    left, details["until"] = _until(facts, throttle.until)
    details["limitedBy"], details["secondsLeft"] = throttle.limited_by, round(left, 3)
    return (
        f"rate limited until {details['until']}, which is in {_spoken(left)}: "
        f"the dispatch rate of its {throttle.limited_by.lower()} is used up"
    )


def _unreadable(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    unreadable = facts.subscription.unreadable
    details["damage"], (_, details["retry"]) = unreadable.told, _until(facts, unreadable.until)
    return f"the next entry cannot be read from disk ({unreadable.told}); the broker tries again at {details['retry']}"


def _look_ahead(facts: Facts, details: dict[str, Any], reason: Reason) -> str:
    assert facts.dispatcher is not None
    details["waiting"] = waiting = facts.dispatcher.waiting_count
    return f"{waiting} entries wait for their consumers: no more are read (keySharedLookAheadMsgInReplayThreshold...)"


_SENTENCES = {
    Reason.NO_CONSUMER: _no_consumer,
    Reason.NO_PERMITS: _no_permits,
    Reason.NOT_WRITABLE: _not_writable,
    Reason.CONSUMERS_OWE: _consumers_owe,
    Reason.SUBSCRIPTION_OWES: _subscription_owes,
    Reason.FAILOVER_DELAY: _failover,
    Reason.DELIVERED: _delivered,
    Reason.DELAYED: _delayed,
    Reason.WAITING: _waiting,
    Reason.DRAINING: _draining,
    Reason.NO_OWNER: _no_owner,
    Reason.LOOK_AHEAD: _look_ahead,
    Reason.RATE_LIMITED: _rate_limited,
    Reason.OPEN_TRANSACTION: _open_transaction,
    Reason.UNREADABLE: _unreadable,
    Reason.ABORTED: _aborted,
}


def _called(consumer: Consumer) -> str:
    return consumer.name or "a consumer without a name"


def _names(consumers: Iterable[Consumer]) -> str:
    names = [_called(each) for each in consumers]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _spoken(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} seconds"


def _count(number: int, one: str, many: str) -> str:
    return f"1 {one}" if number == 1 else f"{number} {many}"
