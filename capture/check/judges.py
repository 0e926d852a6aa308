"""Judge the events of a history: a stored message, a delivery, and the ends of transactions and subscriptions.

Each judge sees the history before the event.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulsarium.capture.check import promises
from pulsarium.capture.check.history import (
    NEVER,
    ConsumerHistory,
    EntryDeliveries,
    FramePlace,
    History,
    SentMessage,
    SubscriptionHistory,
    TopicHistory,
    TransactionHistory,
    TransactionOutcome,
)
from pulsarium.capture.check.verdict import Tally
from pulsarium.capture.lint.members import Position
from pulsarium.capture.lint.rule import Requirement
from pulsarium.capture.lint.shared import Transaction

CROSSING_NS = 5_000_000_000
"""Time in which a command and a delivery may cross, because a proxy records them before the broker reads them."""
SETTLED_NS = 5_000_000_000
"""Time after which a broker has delivered every message that it can deliver."""
_MOST_REPEATED = 10_000


@dataclass(frozen=True, slots=True)
class Arrived:
    """A MESSAGE: its entry's position, key, transaction and time, and the earlier delivery of the entry."""

    place: FramePlace
    reader: ConsumerHistory
    position: Position
    key: str
    transaction: Transaction | None
    publish_ms: int
    deliver_at_ms: int
    before: EntryDeliveries | None


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Assumptions of the user about events that the capture does not show.

    whole: whether the capture has the opening of all its connections. nothing_unseen: whether no message expired, no
    other program consumed, and nobody changed a subscription over REST. tick_ms: the broker's tick of delayed delivery.
    """

    whole: bool = True
    nothing_unseen: bool = False
    tick_ms: int = 1000


class Judges:
    """Judges of one history."""

    def __init__(self, history: History, tally: Tally, assumed: Assumptions) -> None:
        self._history = history
        self._tally = tally
        self._assumed = assumed
        self._repeated: list[tuple[TopicHistory, SentMessage, SentMessage]] = []

    # ---- stored messages

    def stored(self, topic: TopicHistory, message: SentMessage, last: SentMessage | None) -> None:
        """Judge a receipt. `last` is the previous stored message of the same producer on the same connection."""
        if last is not None:
            if (last.sent.record < message.sent.record) == (last.position < message.position):
                self._tally.keep(promises.PRODUCER_ORDER)
            else:
                first, second = sorted((last, message), key=lambda each: each.sent.record)
                detail = f"{_id(second.position)} was sent after {_id(first.position)}"
                self._tally.breach(promises.PRODUCER_ORDER, detail, topic, "", last.stored, message.stored)
        if not message.producer:
            return
        key = (message.producer, message.sequence, message.part)
        before = topic.sequences.get(key)
        if before is None:
            topic.sequences[key] = message
        elif len(self._repeated) < _MOST_REPEATED:
            self._repeated.append((topic, before, message))

    def _judge_repeated(self) -> None:
        for topic, first, second in self._repeated:
            shown = topic.deduplicated
            if not shown:
                continue  # without deduplication a message may be stored twice
            if not shown[0] < second.stored.record < shown[-1]:
                self._tally.doubt(promises.STORED_TWICE, "no frame shows that deduplication was on at that time")
            elif not (first.session == second.session or self._assumed.nothing_unseen):
                self._tally.doubt(promises.STORED_TWICE, "the topic may have been deleted between the two messages")
            else:
                detail = f"sequence id {second.sequence} of producer {second.producer!r} is in two entries, "
                detail += f"{_id(first.position)} and {_id(second.position)}"
                self._tally.breach(promises.STORED_TWICE, detail, topic, "", first.stored, second.stored)

    # ---- deliveries

    def delivered(self, event: Arrived) -> None:
        """Judge a MESSAGE."""
        subscription = event.reader.subscription
        self._visible(event, subscription)
        if subscription.read_compacted and subscription.topic.newest.get(event.key) == event.position:
            self._tally.keep(promises.NEWEST)
        if event.deliver_at_ms and not subscription.single:
            self._on_time(event, subscription)
        if event.before is not None:
            self._again(event, event.before, subscription)
        elif subscription.single:
            self._in_order(event, subscription)
            if subscription.last is not None and subscription.last < event.position:
                self._skipped(event, subscription, subscription.last)
        if subscription.key_shared and event.key and not subscription.out_of_order:
            self._of_key(event, subscription)

    def _visible(self, event: Arrived, subscription: SubscriptionHistory) -> None:
        transaction = event.transaction
        outcome = self._history.outcome(transaction)
        if transaction is None or outcome is None:
            return
        if outcome is TransactionOutcome.OPEN:
            promise, what = promises.DIRTY, "is open"
        elif outcome in (TransactionOutcome.ABORTING, TransactionOutcome.ABORTED):
            promise, what = promises.ABORTED, "was aborted"
        else:
            self._tally.keep(promises.DIRTY)
            return
        ended = self._history.transactions.get(transaction)
        assert ended is not None
        detail = f"{_id(event.position)} of transaction ({transaction[0]},{transaction[1]}), which {what}"
        self._breach(promise, detail, subscription, ended.place, event.place)

    def _on_time(self, event: Arrived, subscription: SubscriptionHistory) -> None:
        message = self._history.message(subscription.topic, event.position)
        begin = event.place if message is None else message.sent
        waited_ms = (event.place.ns - begin.ns) / 1_000_000
        delay_ms = event.deliver_at_ms - event.publish_ms
        early_ms = min(event.deliver_at_ms - event.place.wall_ns / 1_000_000, delay_ms - waited_ms)
        if early_ms <= self._assumed.tick_ms or message is None:
            self._tally.keep(promises.EARLY)
            subscription.held_back |= message is not None and waited_ms >= self._assumed.tick_ms
        elif not (subscription.held_back or self._assumed.nothing_unseen):
            self._tally.doubt(promises.EARLY, "no frame shows that delayed delivery is on")
        else:
            detail = f"{_id(event.position)} came {early_ms / 1000:.1f} s before its time"
            self._breach(promises.EARLY, detail, subscription, message.sent, event.place)

    def _again(self, event: Arrived, before: EntryDeliveries, subscription: SubscriptionHistory) -> None:
        cause_ns = max(before.cause_ns, before.reader.cause_ns, subscription.cause_ns)
        caused = cause_ns + CROSSING_NS >= before.last.ns or not before.reader.open
        acked = subscription.acked_by(event.position)
        if acked is None and caused:
            self._tally.keep(promises.AGAIN)
        elif acked is None:
            detail = f"{_id(event.position)} was delivered again, and no frame asked for it"
            self._breach(promises.AGAIN, detail, subscription, before.last, event.place)
        elif NEVER < subscription.cause_ns <= acked.ns + CROSSING_NS:
            self._tally.doubt(promises.ACKED, "the acknowledgement may have crossed a redelivery of all messages")
        else:
            detail = f"{_id(event.position)} was delivered again after its acknowledgement"
            self._breach(promises.ACKED, detail, subscription, before.last, acked, event.place)

    def _in_order(self, event: Arrived, subscription: SubscriptionHistory) -> None:
        last = subscription.last
        if last is None or last < event.position:
            self._tally.keep(promises.SUBSCRIPTION_ORDER)
            return
        detail = f"{_id(event.position)} came first after {_id(last)}"
        after = subscription.deliveries.get(last)
        frames = (event.place,) if after is None else (after.first, event.place)
        self._breach(promises.SUBSCRIPTION_ORDER, detail, subscription, *frames)

    def _of_key(self, event: Arrived, subscription: SubscriptionHistory) -> None:
        last = subscription.keys.get(event.key)
        previous = None if last is None else subscription.deliveries.get(last)
        if last is None or previous is None:
            return
        if event.before is None and not event.deliver_at_ms:
            if last < event.position:
                self._tally.keep(promises.KEY_ORDER)
            else:
                detail = f"{_id(event.position)} of key {event.key!r} came first after {_id(last)}"
                self._breach(promises.KEY_ORDER, detail, subscription, previous.first, event.place)
        cause_ns = max(previous.cause_ns, previous.reader.cause_ns, subscription.cause_ns)
        released = previous.released or not previous.reader.open or cause_ns + CROSSING_NS >= previous.last.ns
        if previous.reader is event.reader or released:
            self._tally.keep(promises.KEY_OWNER)
        else:
            detail = f"{_id(event.position)} of key {event.key!r} went to another consumer than {_id(last)}, "
            detail += "which is unacknowledged"
            self._breach(promises.KEY_OWNER, detail, subscription, previous.last, event.place)

    # ---- messages that are absent

    def _skipped(self, event: Arrived, subscription: SubscriptionHistory, after: Position) -> None:
        """Judge the stored messages that a delivery in order passed over."""
        for position in subscription.topic.between(after, event.position):
            message = self._history.message(subscription.topic, position)
            if message is None or position in subscription.deliveries:
                continue
            if message.transaction is not None or not message.visible:
                continue
            if subscription.read_compacted and (after > (-1, -1) or subscription.from_start):
                self._compacted(event, subscription, message)
            elif (
                not subscription.read_compacted
                and subscription.born < message.sent.record
                and subscription.acked_by(position) is None
            ):
                ready = subscription.exclusive and event.reader.starved_ns < message.stored.ns
                if (ready and self._assumed.whole) or self._assumed.nothing_unseen:
                    subscription.suspects[position] = (f"{_id(event.position)} came", event.place)

    def _compacted(self, event: Arrived, subscription: SubscriptionHistory, message: SentMessage) -> None:
        newest = [each for each in message.keys or () if subscription.topic.newest.get(each) == message.position]
        if not newest:
            return
        if not (self._assumed.whole and self._assumed.nothing_unseen):
            self._tally.doubt(promises.NEWEST, "a message that the capture does not show may be newer")
            return
        detail = f"{_id(message.position)} is the newest message of key {newest[0]!r}, and {_id(event.position)} came"
        self._breach(promises.NEWEST, detail, subscription, message.stored, event.place)

    def leaves(self, subscription: SubscriptionHistory, now: FramePlace) -> None:
        """Judge the undelivered messages of a subscription, when its last consumer leaves or the history ends."""
        readers = [each for each in subscription.readers if each.attached]
        if not (readers and self._assumed.nothing_unseen) or subscription.read_compacted:
            return
        for position, message in self._due(subscription):
            since = max(message.stored.ns, *(each.starved_ns for each in readers))
            ended = self._history.transactions.get(message.transaction)
            if ended is not None:
                since = max(since, ended.place.ns)
            late = now.wall_ns / 1_000_000 - message.deliver_at_ms >= SETTLED_NS / 1_000_000
            if since + SETTLED_NS <= now.ns and late:
                waited = (now.ns - since) / 1e9
                subscription.suspects.setdefault(position, (f"a consumer with permits waited {waited:.1f} s", now))

    def finished(self, subscription: SubscriptionHistory) -> None:
        """Judge the losses of a subscription at its end."""
        if subscription.read_compacted:
            return
        topic = subscription.topic
        for position, message in self._due(subscription):
            evidence = subscription.suspects.get(position)
            if evidence is not None:
                detail = f"{_id(position)} was never delivered, although {evidence[0]}"
                self._breach(promises.LOST, detail, subscription, message.stored, evidence[1])
            elif topic.faulted:
                self._tally.doubt(promises.LOST, "a fault of the lab changed frames of the topic")
            else:
                self._tally.doubt(promises.LOST, "the message may have expired, been skipped, or be due later")
        for position in subscription.deliveries:
            if subscription.acked_by(position) is not None:
                self._tally.keep(promises.ACKED)
            message_seen = self._history.message(topic, position)
            if message_seen is not None and message_seen.sent.record > subscription.born:
                self._tally.keep(promises.LOST)

    def _due(self, subscription: SubscriptionHistory) -> list[tuple[Position, SentMessage]]:
        """Return the messages that the subscription should get and did not get."""
        due = []
        for position in subscription.topic.positions:
            if position in subscription.deliveries or subscription.acked_by(position) is not None:
                continue
            message = self._history.message(subscription.topic, position)
            if message is None or message.sent.record < subscription.born or not message.visible:
                continue
            if (
                message.transaction is None
                or self._history.outcome(message.transaction) is TransactionOutcome.COMMITTED
            ):
                due.append((position, message))
        return due

    # ---- ends

    def committed(self, transaction: Transaction, ended: TransactionHistory, place: FramePlace) -> None:
        """Judge the acknowledgements of a transaction, and make them final."""
        for subscription, position, acked in ended.acks:
            delivery = subscription.deliveries.get(position)
            if delivery is None:
                continue
            earlier = delivery.committed_by
            if earlier is None or earlier[0] == transaction:
                self._tally.keep(promises.CONSUMED_TWICE)
            elif subscription.jumped and not self._assumed.nothing_unseen:
                self._tally.doubt(promises.CONSUMED_TWICE, "a seek over REST may have undone the first transaction")
            else:
                detail = f"{_id(position)} was acknowledged by two committed transactions"
                self._breach(promises.CONSUMED_TWICE, detail, subscription, earlier[1], place)
            delivery.committed_by = (transaction, place)
            delivery.acked = acked

    def end(self) -> None:
        """Judge the end of the history."""
        self._judge_repeated()
        for topic in self._history.topics.values():
            for subscription in topic.subscriptions.values():
                self.finished(subscription)

    def _breach(
        self, promise: Requirement, detail: str, subscription: SubscriptionHistory, *frames: FramePlace
    ) -> None:
        self._tally.breach(promise, detail, subscription.topic, subscription.name, *frames)


def _id(position: Position) -> str:
    return f"{position[0]}:{position[1]}"
