"""Find the reason why a message was not delivered."""

from __future__ import annotations

from itertools import filterfalse
from typing import TYPE_CHECKING, Any, Final

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.lab.why.answer import CAUGHT_UP, NOT_LOADED, AskedMessage, NotThere, Why, WhyError
from pulsarium.broker.lab.why.partitions import explain_partitions, partition_with
from pulsarium.broker.lab.why.passed import acknowledged, batch_index_acknowledged, nothing_waits
from pulsarium.broker.lab.why.present import Facts, present, present_damage
from pulsarium.broker.lab.why.producer import explain_producer, refusals, told
from pulsarium.broker.lab.why.unacknowledged import held_by, with_backlog, with_deliveries
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.scalable.explained import explain_scaling
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import SCALABLE, TopicName

if TYPE_CHECKING:
    from pulsarium.broker.lab.why.answer import AskedMessage


_DEALT_WITH: Final = (Reason.ACKNOWLEDGED, Reason.DELIVERED)


def explain(
    cluster: Cluster,
    topic: str,
    subscription: str | None = None,
    message_id: str | None = None,
    producer: str | None = None,
) -> Why:
    """Explain the state of a message for a subscription. Without an id, explain the next undelivered message.

    With `producer`, explain the state of that producer, or of any new producer for "".

    For a partitioned topic, explain all partitions, the one that is stuck most first.

    For a scalable topic without a subscription, explain its last and next scaling. With one, explain the next
    undelivered message of its segments. The answer is the dispatcher's own decision, looked up now. Raise `WhyError`,
    or `NotThere` when the topic or the subscription does not exist.
    """
    asked = None if message_id is None else AskedMessage.parse(message_id)
    name = _name(topic, asked)
    if producer is not None:
        if subscription or message_id:
            raise WhyError("ask about a producer, or about a subscription and its message, not about both")
        return explain_producer(cluster, name, producer)
    if name.domain == SCALABLE:
        if asked is not None:
            raise WhyError(f"{name} has its messages in segments; name the segment:// topic of the message")
        return _of_scalable(cluster, name, subscription)
    if subscription is None:
        raise WhyError(f"name a subscription of {name}; only a scalable topic (topic://) is explained without one")
    partitions = cluster.metadata.partitions_of(name)
    if partitions and asked is None:
        return explain_partitions(cluster, name, partitions, subscription, lambda its: _of_subscription(its, None))
    if partitions and asked is not None:
        name = partition_with(cluster, name, partitions, asked)
    details: dict[str, Any] = {"topic": str(name), "subscription": subscription}
    if asked is not None:
        details["messageId"] = str(asked)
    found = cluster.topics.loaded.get(str(name))
    if found is None:
        if cluster.topics.exists(name):
            return Why("topic-not-loaded", NOT_LOADED, details)
        raise NotThere(f"there is no topic {name}")
    if not isinstance(found, PersistentTopic):
        raise WhyError(f"{name} stores no messages: those that its consumers cannot take at once are dropped")
    its = found.subscriptions.get(subscription)
    if its is None:
        others = ", ".join(sorted(found.subscriptions)) or "none"
        raise NotThere(f"{name} has no subscription {subscription}; there are: {others}")
    why = _of_subscription(its, asked)
    latest = [] if asked else refusals(cluster, ("SUBSCRIBE",), topic=str(name), subscription=subscription)
    return told(Why(why.reason, why.text, details | why.details), latest)


def _of_scalable(cluster: Cluster, name: TopicName, subscription: str | None) -> Why:
    """Explain the next undelivered message of a subscription of a scalable topic, or the scaling of the topic."""
    topic = cluster.scalable.find(name)
    if topic is None:
        raise NotThere(f"there is no scalable topic {name}")
    controller = cluster.controllers.find(topic)
    if subscription is None:
        return Why(*explain_scaling(topic, controller))
    details: dict[str, Any] = {"topic": str(topic.name), "subscription": subscription}
    segments, answers = topic.layout.assignable(), []
    for segment in segments:
        loaded = cluster.topics.loaded.get(str(topic.segment_topic(segment)))
        its = loaded.subscriptions.get(subscription) if isinstance(loaded, PersistentTopic) else None
        if its is not None:
            answers.append((segment, _of_subscription(its, None)))
    details["segments"] = {str(segment.id): answer.reason for segment, answer in answers}
    undrained = [] if controller is None else controller.registrations.undrained(subscription)
    if undrained:
        details["undrained"] = undrained
    waiting = [(segment, answer) for segment, answer in answers if answer.reason != CAUGHT_UP]
    # A sealed segment comes first, because its children may wait for it.
    for segment, answer in sorted(waiting, key=lambda pair: pair[0].active):
        return Why(answer.reason, f"segment {segment.id}: {answer.text}", details | answer.details)
    if undrained:
        sealed = ", ".join(map(str, undrained))
        text = f"the segments that replace segment {sealed} wait until all its messages are acknowledged"
        return Why("waits-for-drain", text, details)
    if not answers:
        raise NotThere(f"no segment of {name} that is loaded has a subscription {subscription}")
    return Why(CAUGHT_UP, "everything was delivered or acknowledged in all segments", details)


def _name(topic: str, asked: AskedMessage | None) -> TopicName:
    try:
        name = TopicName.parse(topic)
        if asked is not None and asked.partition >= 0 and name.partition_index < 0:
            name = TopicName.parse(f"{topic}-partition-{asked.partition}")
    except InvalidTopicName as error:
        raise WhyError(str(error)) from None
    return name


def _of_subscription(subscription: PersistentSubscription, asked: AskedMessage | None) -> Why:
    return (
        with_deliveries(_of_message(subscription, asked)) if asked else with_backlog(subscription, _next(subscription))
    )


def _next(subscription: PersistentSubscription) -> Why:
    """Explain the next message that no consumer has, or why there is none."""
    position = next_undelivered(subscription)
    if position is None:
        return nothing_waits(subscription) if not subscription.cursor.backlog() else _delivered(subscription)
    why = _of_message(subscription, AskedMessage(position))
    return Why(why.reason, why.text, {"messageId": str(position), **why.details})


def _delivered(subscription: PersistentSubscription) -> Why:
    """Explain a backlog that consumers or open transactions have, by its first message."""
    cursor = subscription.cursor
    first = cursor.ledger.next(cursor.mark_delete)
    why = _of_message(subscription, AskedMessage(first))
    details = {"backlog": cursor.backlog(), "firstUnacknowledged": str(first), "heldBy": held_by(subscription)}
    return Why(CAUGHT_UP, f"everything was delivered, and {first} is not acknowledged: {why.text}", details)


def _of_message(subscription: PersistentSubscription, asked: AskedMessage) -> Why:
    cursor, ledger, position = subscription.cursor, subscription.topic.ledger, asked.position
    facts = Facts(subscription, position)
    entries = ledger.ledgers.get(position.ledger_id)
    is_there = entries is not None and 0 <= position.entry_id < entries.count
    if not is_there and (entries is not None or min(position) < 0 or position > cursor.mark_delete):
        return Why("no-such-message", _absence(subscription, position), facts.of_cursor())
    if is_there and not ledger.is_valid(position):
        return Why("not-confirmed", "it is not stored yet: its commit is on its way", facts.of_cursor())
    if is_there and (damage := facts.damage):
        if cursor.is_acked(position):
            return acknowledged(subscription, position, facts.of_cursor())
        return present_damage(damage, facts)
    if is_there and asked.batch_index >= facts.batch_size:
        text = f"there is no such message: the entry has {facts.batch_size}, from 0 on"
        return Why("no-such-message", text, facts.of_cursor())
    if is_there and ledger.transactions.hides(position, ledger.read_now(position)):
        return present(Reason.ABORTED, facts)
    if cursor.is_acked(position):
        return acknowledged(subscription, position, facts.of_cursor())
    of_batch = batch_index_acknowledged(subscription, asked) if asked.batch_index >= 0 else None
    if of_batch is not None:
        return of_batch
    reason, pending = subscription.why(position), subscription.pending_acks
    if reason is Reason.DELIVERED and pending and pending.acknowledged_by(position, asked.batch_index):
        reason = Reason.PENDING_ACK
    return present(reason, facts, asked.batch_index)


def _absence(subscription: PersistentSubscription, position: Position) -> str:
    ledger = subscription.topic.ledger
    entries = ledger.ledgers.get(position.ledger_id)
    if entries is not None:
        return f"there is no such message: ledger {entries.id} has {entries.confirmed} entries, from 0 on"
    there = ", ".join(str(each) for each in list(ledger.ledgers)[:10])
    return f"there is no such message: the topic has no ledger {position.ledger_id}; it has {there}"


def next_undelivered(subscription: PersistentSubscription) -> Position | None:
    """Return the first entry that no consumer has, or None.

    Read entries that wait come first, with entries that were not read yet. Delayed entries count only when no other
    entry is left.
    """
    dispatcher, cursor, ledger = subscription.dispatcher, subscription.cursor, subscription.topic.ledger
    waiting = [] if dispatcher is None else dispatcher.undelivered()
    firsts = (next(filterfalse(cursor.is_settled, positions), None) for positions in waiting)
    found = [each for each in firsts if each is not None]
    read = subscription.reads_on_at
    unread = ledger.next(Position(read.ledger_id, read.entry_id - 1))
    while unread in cursor.individual_acks or cursor.left_of(unread) == 0:
        last = cursor.individual_acks.run_end(*unread) if unread in cursor.individual_acks else unread.entry_id
        unread = ledger.next(Position(unread.ledger_id, last))
    if ledger.is_valid(unread):
        found.append(unread)
    if not found and dispatcher is not None:
        nobodys = (each for each in dispatcher.delayed if subscription.why(each) not in _DEALT_WITH)
        return next(nobodys, None)
    return min(found, default=None)
