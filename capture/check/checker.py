"""Follow a capture, record by record, and judge it against the promises of Pulsar."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pulsarium.capture.check import promises
from pulsarium.capture.check.history import (
    ConsumerHistory,
    EntryDeliveries,
    FramePlace,
    History,
    SentMessage,
    SubscriptionHistory,
    TransactionHistory,
    TransactionOutcome,
    place_of,
)
from pulsarium.capture.check.judges import CROSSING_NS, Arrived, Assumptions, Judges
from pulsarium.capture.check.verdict import Tally
from pulsarium.capture.file import CaptureRecord, EventKind
from pulsarium.capture.lint.checker import RecordFindings, Walk
from pulsarium.capture.lint.exchanges import OK, LintedExchange
from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.members import Bounded
from pulsarium.capture.lint.shared import position_of, transaction_of
from pulsarium.capture.lint.state import LintedConnection
from pulsarium.proto.commands import Direction
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated.PulsarApi_pb2 import ABORT, CommandAck, CommandSubscribe, MessageMetadata

_MOST_IN_FLIGHT = 50_000
_FOREVER = 1 << 62
_CLIENT, _BROKER = Direction.CLIENT, Direction.BROKER


class HistoryChecker:
    """Checker of one history, which gets the records of all its connections in order."""

    def __init__(self, assumed: Assumptions | None = None) -> None:
        assumed = assumed or Assumptions()
        self.tally = Tally()
        self._assumed = assumed
        self._walk = Walk(judging=True, whole=assumed.whole)
        self._history = History()
        self._judges = Judges(self._history, self.tally, assumed)
        self._sends: Bounded[tuple[int, int], SentMessage] = Bounded(_MOST_IN_FLIGHT)
        self._last: Bounded[tuple[int, int, int], SentMessage] = Bounded(_MOST_IN_FLIGHT)
        """Last stored message of each producer on its connection."""
        self._place: FramePlace | None = None

    def feed(self, number: int, record: CaptureRecord) -> None:
        """Add a record, with its number in the capture."""
        checker, seen = self._walk.feed(record)
        state, frame = checker.state, seen.frame
        if frame is not None:
            self._place = place_of(number, frame)
            self._permits(frame, seen, self._place)
            if not frame.legal and frame.topic:
                self._history.topic(frame.topic).faulted = True
            if not (frame.faulted and record.note.get("arrived") is False):
                react = _REACTIONS.get((frame.name, frame.sender))
                if react is not None:
                    react(self, state, frame, self._place)
        for exchange in seen.exchanges:
            self._ended(exchange, number)
        if record.kind is EventKind.CLOSED:
            self._closed(record, number)

    def end(self) -> Tally:
        """Judge the end of the history, and return all verdicts."""
        if self._place is not None:
            for topic in self._history.topics.values():
                for subscription in topic.subscriptions.values():
                    self._judges.leaves(subscription, self._place)
        self._judges.end()
        return self.tally

    def _permits(self, frame: Frame, seen: RecordFindings, place: FramePlace) -> None:
        """Take the linter's word on permits."""
        broken = [each for each in seen.violations if each.rule is promises.PERMITS]
        for violation in broken:
            topic = self._history.topic(frame.topic or "")
            self.tally.breach(promises.PERMITS, violation.detail, topic, "", place)
        if frame.name == "MESSAGE" and not broken:
            self.tally.keep(promises.PERMITS)

    # ---- producers

    def _send(self, state: LintedConnection, frame: Frame, place: FramePlace) -> None:
        producer = state.producer(frame)
        if producer is None or producer.topic.startswith("non-persistent:"):
            return
        sent = state.sent(frame)
        metadata = sent.metadata or MessageMetadata()
        keys: tuple[set[str], set[str]] = (set(), set())
        for each, payload in sent.messages:
            if each.HasField("partition_key"):
                keys[not payload].add(each.partition_key)  # compaction takes an empty payload for a deletion
        self._sends[frame.record.connection, frame.number] = SentMessage(
            sent=place,
            session=(frame.record.connection, frame.producer_id or 0, producer.opened),
            producer=metadata.producer_name,
            sequence=frame.sequence_id or 0,
            part=metadata.chunk_id if metadata.num_chunks_from_msg > 1 else 0,
            transaction=transaction_of(frame.body) or transaction_of(metadata),
            deliver_at_ms=metadata.deliver_at_time,
            keys=frozenset(keys[False]) if sent.messages else None,
            deleted=frozenset(keys[True]),
            visible=sent.metadata is not None
            and not (metadata.HasField("marker_type") or sent.chunked or sent.wrong_batch),
            position=(-1, -1),
            stored=place,
        )

    def _receipt(self, exchange: LintedExchange, place: FramePlace) -> None:
        request, answer = exchange.request, exchange.answer
        message = self._sends.pop((request.record.connection, request.number))
        if message is None or answer is None or answer.name != "SEND_RECEIPT" or not request.topic:
            return
        topic = self._history.topic(request.topic)
        message.position, message.stored = position_of(answer.body.message_id), place
        if message.position[0] < 0:
            self.tally.keep(promises.STORED_TWICE)
            topic.deduplicated = [*topic.deduplicated[:1], place.record]
        elif (topic.name, message.position) not in self._history.messages:
            self._judges.stored(topic, message, self._last.get(message.session))
            self._last[message.session] = message
            self._history.messages[topic.name, message.position] = message
            topic.add(message)

    # ---- consumers

    def _subscribed(self, state: LintedConnection, request: Frame, place: FramePlace) -> None:
        seen = state.consumer(request)
        if seen is None or seen.opened != request.number or seen.topic.startswith("non-persistent:"):
            return
        body, topic = request.body, self._history.topic(seen.topic)
        found = topic.subscriptions.get(seen.subscription)
        if found is not None and not found.durable and not any(each.open for each in found.readers):
            self._leave(found, place, ended=True)
            found = None
        if found is None:
            found = SubscriptionHistory(
                seen.subscription,
                topic,
                seen.type,
                durable=body.durable,
                read_compacted=body.read_compacted,
                out_of_order=body.keySharedMeta.allowOutOfOrderDelivery,
                from_start=_from_start(body),
                born=place.record,
            )
            topic.subscriptions[seen.subscription] = found
        elif not any(each.open for each in found.readers):
            found.type, found.read_compacted = seen.type, body.read_compacted
            if not self._assumed.nothing_unseen:
                found.jump(place.ns)
                found.forget_acks()
        if found.type == CommandSubscribe.Failover:
            found.cause_ns = max(found.cause_ns, place.ns)
        found.readers = [each for each in found.readers if each.open]
        reader = ConsumerHistory(found, seen, request.record.connection, starved_ns=_FOREVER)
        found.readers.append(reader)
        self._history.readers[request.record.connection, request.consumer_id or 0] = reader

    def _reader(self, frame: Frame) -> ConsumerHistory | None:
        return self._history.readers.get((frame.record.connection, frame.consumer_id or 0))

    def _flow(self, state: LintedConnection, frame: Frame, place: FramePlace) -> None:
        reader = self._reader(frame)
        if reader is not None and reader.starved_ns == _FOREVER and reader.seen.permits > 0:
            reader.starved_ns = place.ns

    def _message(self, state: LintedConnection, frame: Frame, place: FramePlace) -> None:
        reader = self._reader(frame)
        if reader is None:
            return
        position, subscription = position_of(frame.body.message_id), reader.subscription
        try:
            metadata = parse_metadata(frame.entry) if frame.whole else MessageMetadata()
        except EntryError:
            metadata = MessageMetadata()
        key = metadata.ordering_key.decode("latin-1") or metadata.partition_key
        times = metadata.publish_time, metadata.deliver_at_time
        before = subscription.deliveries.get(position)
        sent = self._history.message(subscription.topic, position)
        transaction = sent.transaction if sent is not None else transaction_of(metadata)
        self._judges.delivered(Arrived(place, reader, position, key, transaction, *times, before))
        first = place if before is None else before.first
        committed = None if before is None else before.committed_by
        subscription.deliveries[position] = EntryDeliveries(first, place, reader, committed_by=committed)
        if subscription.last is None or position > subscription.last:
            subscription.last = position
        if key:
            subscription.keys[key] = position
        if reader.seen.permits <= 0:
            reader.starved_ns = _FOREVER

    def _ack(self, state: LintedConnection, frame: Frame, place: FramePlace) -> None:
        reader, body = self._reader(frame), frame.body
        if reader is None or not reader.open or body.HasField("validation_error"):
            return
        subscription, transaction = reader.subscription, transaction_of(body)
        cause_ns = max(reader.cause_ns, subscription.cause_ns)
        for data in body.message_id:
            position = position_of(data)
            delivery = subscription.deliveries.get(position)
            if delivery is not None:
                delivery.released |= not data.ack_set
                if transaction is not None:
                    delivery.cause_ns = place.ns  # the transaction may be aborted, which no frame need tell
            if body.ack_type == CommandAck.Cumulative:
                if transaction is not None:
                    subscription.cause_ns = place.ns
                elif subscription.single and cause_ns + CROSSING_NS < place.ns:
                    reached = (position[0], position[1] - 1) if data.ack_set else position
                    if reached > subscription.acked_position:
                        subscription.acked_position, subscription.acked_through = reached, place
            elif delivery is None or data.ack_set:
                continue
            elif transaction is not None:
                ended = self._history.transactions.get(transaction)
                if ended is not None:
                    ended.acks.append((subscription, position, place))
            elif max(cause_ns, delivery.cause_ns) + CROSSING_NS < delivery.last.ns:
                delivery.acked = place

    def _redeliver(self, state: LintedConnection, frame: Frame, place: FramePlace) -> None:
        reader = self._reader(frame)
        if reader is None:
            return
        subscription = reader.subscription
        if subscription.single:
            subscription.cause_ns = place.ns
        elif not frame.body.message_ids:
            reader.cause_ns = place.ns
        for data in frame.body.message_ids:
            delivery = subscription.deliveries.get(position_of(data))
            if delivery is not None:
                delivery.cause_ns = place.ns

    def _seek(self, state: LintedConnection, frame: Frame, place: FramePlace) -> None:
        reader = self._reader(frame)
        if reader is not None:
            reader.subscription.jump(place.ns)
            reader.subscription.forget_acks()

    def _active(self, state: LintedConnection, frame: Frame, place: FramePlace) -> None:
        reader = self._reader(frame)
        if reader is not None:
            reader.subscription.cause_ns = place.ns

    def _closes(self, state: LintedConnection, frame: Frame, place: FramePlace) -> None:
        reader = self._reader(frame)
        if reader is not None:
            self._leave(reader.subscription, place)

    def _closed_by_broker(self, state: LintedConnection, frame: Frame, place: FramePlace) -> None:
        reader = self._reader(frame)
        if reader is None:
            return
        self._leave(reader.subscription, place)
        reader.gone = True
        reader.subscription.jump(place.ns)
        if not self._assumed.nothing_unseen:
            reader.subscription.forget_acks()

    def _unsubscribed(self, request: Frame, place: FramePlace) -> None:
        reader = self._reader(request)
        if reader is not None:
            self._leave(reader.subscription, place, ended=True)

    def _leave(self, subscription: SubscriptionHistory, place: FramePlace, *, ended: bool = False) -> None:
        """Judge a subscription before a consumer leaves. `ended` says that the subscription ends too."""
        self._judges.leaves(subscription, place)
        known = subscription.topic.subscriptions
        if ended and known.get(subscription.name) is subscription:
            self._judges.finished(subscription)
            del known[subscription.name]

    def _closed(self, record: CaptureRecord, number: int) -> None:
        """End the consumers of a closed connection. A broker that closes one may have crashed."""
        place = FramePlace(number, record.connection, 0, "CLOSED", record.monotonic_ns, record.wall_ns)
        crashed = record.sender is _BROKER or bool(record.note.get("reason"))
        for reader in [each for each in self._history.readers.values() if each.connection == record.connection]:
            if not reader.gone:
                self._judges.leaves(reader.subscription, place)
                reader.gone = True
                if crashed:
                    reader.subscription.jump(place.ns)
                    reader.subscription.forget_acks()

    # ---- transactions

    def _ends_transaction(self, state: LintedConnection, frame: Frame, place: FramePlace) -> None:
        transaction = transaction_of(frame.body)
        ended = self._history.transactions.get(transaction)
        if ended is not None and ended.outcome is TransactionOutcome.OPEN:
            ended.outcome = (
                TransactionOutcome.ABORTING if frame.body.txn_action == ABORT else TransactionOutcome.COMMITTING
            )
            ended.place = place

    def _ends_part(self, state: LintedConnection, frame: Frame, place: FramePlace) -> None:
        """Forget a transaction that a client ends without the coordinator."""
        transaction = transaction_of(frame.body)
        if transaction is not None:
            self._history.transactions.pop(transaction)

    def _transaction_ended(self, request: Frame, place: FramePlace, *, ok: bool) -> None:
        transaction = transaction_of(request.body)
        ended = self._history.transactions.get(transaction)
        if ended is None or transaction is None:
            return
        if not ok:
            self._history.transactions.pop(transaction)  # nobody knows how it ended
        elif ended.outcome is TransactionOutcome.COMMITTING:
            ended.outcome, ended.place = TransactionOutcome.COMMITTED, place
            self._judges.committed(transaction, ended, place)
            ended.acks.clear()
        elif ended.outcome is TransactionOutcome.ABORTING:
            ended.outcome, ended.place = TransactionOutcome.ABORTED, place
            ended.acks.clear()

    # ---- answers

    def _ended(self, exchange: LintedExchange, number: int) -> None:
        request, answer, ok = exchange.request, exchange.answer, exchange.outcome == OK
        if answer is None:
            self._sends.pop((request.record.connection, request.number))
            return
        place = place_of(number, answer)
        match request.name:
            case "SEND":
                self._receipt(exchange, place)
            case "SUBSCRIBE" if ok:
                checker = self._walk.checker(request.record.connection)
                if checker is not None:
                    self._subscribed(checker.state, request, place)
            case "UNSUBSCRIBE" if ok:
                self._unsubscribed(request, place)
            case "SEEK":
                reader = self._reader(request)
                if reader is not None:
                    reader.subscription.jump(place.ns)
                    reader.subscription.forget_acks()
            case "NEW_TXN" if ok and (given := transaction_of(answer.body)) is not None:
                self._history.transactions[given] = TransactionHistory(TransactionOutcome.OPEN, place)
            case "END_TXN":
                self._transaction_ended(request, place, ok=ok)
            case "ACK" if not ok:
                self._ack_refused(request)

    def _ack_refused(self, request: Frame) -> None:
        reader = self._reader(request)
        if reader is None:
            return
        ended = self._history.transactions.get(transaction_of(request.body))
        for data in request.body.message_id:
            position = position_of(data)
            delivery = reader.subscription.deliveries.get(position)
            if delivery is not None and ended is None:
                delivery.acked = None
            if ended is not None:
                ended.acks = [each for each in ended.acks if each[:2] != (reader.subscription, position)]


def tally_of(numbered: Iterable[tuple[int, CaptureRecord]], assumed: Assumptions | None = None) -> Tally:
    """Judge a whole history of records, each with its number in the capture, and return all verdicts."""
    checker = HistoryChecker(assumed)
    for number, record in numbered:
        checker.feed(number, record)
    return checker.end()


def _from_start(body: Any) -> bool:
    """Return whether a new subscription begins before the first message."""
    if body.HasField("start_message_id"):
        return position_of(body.start_message_id) < (0, 0)
    return bool(body.initialPosition == CommandSubscribe.Earliest)


_REACTIONS: dict[tuple[str, Direction], Callable[[HistoryChecker, LintedConnection, Frame, FramePlace], None]] = {
    ("SEND", _CLIENT): HistoryChecker._send,
    ("FLOW", _CLIENT): HistoryChecker._flow,
    ("ACK", _CLIENT): HistoryChecker._ack,
    ("REDELIVER_UNACKNOWLEDGED_MESSAGES", _CLIENT): HistoryChecker._redeliver,
    ("SEEK", _CLIENT): HistoryChecker._seek,
    ("CLOSE_CONSUMER", _CLIENT): HistoryChecker._closes,
    ("UNSUBSCRIBE", _CLIENT): HistoryChecker._closes,
    ("END_TXN", _CLIENT): HistoryChecker._ends_transaction,
    ("END_TXN_ON_PARTITION", _CLIENT): HistoryChecker._ends_part,
    ("END_TXN_ON_SUBSCRIPTION", _CLIENT): HistoryChecker._ends_part,
    ("MESSAGE", _BROKER): HistoryChecker._message,
    ("CLOSE_CONSUMER", _BROKER): HistoryChecker._closed_by_broker,
    ("ACTIVE_CONSUMER_CHANGE", _BROKER): HistoryChecker._active,
}
