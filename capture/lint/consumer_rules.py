"""Rules of consumers at work: deliveries, acknowledgements, ack sets (PIP-54) and transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.members import Phase, Position
from pulsarium.capture.lint.producer_rules import close_ignored
from pulsarium.capture.lint.rule import Section, Severity
from pulsarium.capture.lint.shared import Subscription, full, position_of, transaction_of
from pulsarium.capture.lint.state import LintedConnection
from pulsarium.proto.commands import Direction
from pulsarium.proto.generated.PulsarApi_pb2 import CommandAck, CommandSubscribe, MessageIdData
from pulsarium.proto.message_id import bits_of
from pulsarium.proto.numbers import INT_MAX

_CONSUMER = "Binary protocol: consumer"
_FLOW = "Binary protocol: flow control"
_USE = [
    "ACK",
    "CONSUMER_STATS",
    "FLOW",
    "GET_LAST_MESSAGE_ID",
    "NEGATIVE_ACK",
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "SEEK",
    "UNSUBSCRIBE",
]
_DRAFT = "PIP-493, a draft"
_GONE = (Phase.CLOSED_BY_CLIENT, Phase.CLOSED_BY_BROKER)


def _is_cumulative(frame: Frame) -> bool:
    return bool(frame.name == "ACK" and frame.body.ack_type == CommandAck.Cumulative)


def _subscription(state: LintedConnection, frame: Frame) -> Subscription | None:
    """Return the state of the subscription of a command's consumer, or None when that state may be incomplete."""
    consumer = state.consumer(frame)
    if consumer is None or state.shared is None or not state.shared.whole:
        return None
    return state.shared.of(consumer.topic, consumer.subscription)


def _never_sent(state: LintedConnection, frame: Frame, message_ids: Iterable[MessageIdData]) -> Iterator[str]:
    consumer, subscription = state.consumer(frame), _subscription(state, frame)
    if consumer is None or subscription is None:
        return
    for message_id in message_ids:
        position = position_of(message_id)
        # A cumulative acknowledgement may name the entry before a batch that is not complete.
        known = position <= subscription.sent.last if _is_cumulative(frame) else position in subscription.sent
        if not known:
            yield f"{position[0]}:{position[1]} was never sent to {consumer.subscription!r}"


CONSUMER_RULES = Section("Rules of consumers: ids, permits, deliveries and SEEK")


@CONSUMER_RULES(
    "unknown-consumer",
    "A command for a consumer names a consumer of its connection.",
    _CONSUMER,
    "Keep consumer ids for each connection.",
    on=_USE,
)
def _consumer_unknown(state: LintedConnection, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is None and state.consumers.whole:
        yield f"{frame.name} for consumer {frame.consumer_id}, which was never opened"
    elif consumer is not None and consumer.phase is Phase.CLOSED_BY_CLIENT and frame.name != "ACK":
        yield f"{frame.name} for consumer {frame.consumer_id}, which its client had closed"


@CONSUMER_RULES(
    "used-before-subscribed",
    "A client uses a consumer after the answer to SUBSCRIBE.",
    _CONSUMER,
    "Wait for SUCCESS: the broker loses earlier permits, and refuses earlier requests.",
    on=_USE,
)
def _consumer_early(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (consumer := state.consumer(frame)) is not None and consumer.phase is Phase.OPENING:
        yield f"{frame.name} for consumer {frame.consumer_id}, whose SUBSCRIBE has no answer yet"


@CONSUMER_RULES(
    "consumer-close-ignored",
    "A client reopens a consumer that the broker closed before using it.",
    "Binary protocol: CLOSE_CONSUMER from a broker",
    "React to CLOSE_CONSUMER: look up the topic and subscribe again. The broker drops commands sent meanwhile.",
    on=_USE,
)
def _consumer_close_ignored(state: LintedConnection, frame: Frame) -> Iterator[str]:
    yield from close_ignored(frame, state.consumer(frame), f"consumer {frame.consumer_id}")


@CONSUMER_RULES(
    "message-to-nobody",
    "MESSAGE goes to an open consumer.",
    _CONSUMER,
    "Send no MESSAGE to a closed consumer.",
    on=["MESSAGE"],
    about=Direction.BROKER,
)
def _consumer_nobody(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (consumer := state.consumer(frame)) is None or consumer.phase in _GONE:
        yield f"MESSAGE to consumer {frame.consumer_id}, which is not open"


@CONSUMER_RULES(
    "permits-exceeded",
    "A consumer gets no more entries than it has granted permits.",
    _FLOW,
    "Count permits in messages.",
    on=["MESSAGE"],
    about=Direction.BROKER,
)
def _consumer_permits(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (consumer := state.consumer(frame)) is not None and consumer.entries <= 0:
        yield f"MESSAGE to consumer {frame.consumer_id}, which has {consumer.permits} permits"


@CONSUMER_RULES(
    "flow-of-nothing",
    "FLOW grants at least one permit, and at most 2^31-1.",
    _FLOW,
    "Send FLOW when there is room for messages: brokers close a connection that grants none.",
    on=["FLOW"],
)
def _consumer_no_permits(state: LintedConnection, frame: Frame) -> Iterator[str]:
    permits = frame.body.messagePermits
    if not 0 < permits <= INT_MAX:
        yield f"FLOW of {permits}"


@CONSUMER_RULES(
    "flow-overflow",
    "The permits of a consumer fit into 31 bits.",
    _FLOW,
    "Grant as many permits as there is room for: brokers add them up, and an overflow stops the consumer.",
    on=["FLOW"],
)
def _consumer_overflow(state: LintedConnection, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is not None and frame.body.messagePermits <= INT_MAX < consumer.permits + frame.body.messagePermits:
        yield f"FLOW of {frame.body.messagePermits} to consumer {frame.consumer_id}, which has {consumer.permits}"


@CONSUMER_RULES(
    "seek-target",
    "SEEK names either a message or a time.",
    "PulsarApi.proto: CommandSeek; ServerError MetadataError",
    "Set either message_id or message_publish_time.",
    on=["SEEK"],
)
def _consumer_target(state: LintedConnection, frame: Frame) -> Iterator[str]:
    given = [name for name in ("message_id", "message_publish_time") if frame.body.HasField(name)]
    if len(given) != 1:
        yield "SEEK to both a message and a time" if given else "SEEK without a target"


@CONSUMER_RULES(
    "second-seek",
    "A consumer sends no SEEK before the answer to the last one.",
    "PulsarApi.proto: CommandSeek; Pulsar fences a subscription while it seeks",
    "Wait for the answer to the first SEEK.",
    on=["SEEK"],
)
def _consumer_second_seek(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (consumer := state.consumer(frame)) is not None and consumer.seeking:
        yield f"SEEK of consumer {frame.consumer_id}, which is seeking"


@CONSUMER_RULES(
    "redeliver-not-delivered",
    "REDELIVER_UNACKNOWLEDGED_MESSAGES names delivered messages of its subscription.",
    "PulsarApi.proto: CommandRedeliverUnacknowledgedMessages",
    "Use ids of MESSAGE. Without ids the broker redelivers all messages of the consumer.",
    on=["REDELIVER_UNACKNOWLEDGED_MESSAGES"],
)
def _consumer_redeliver(state: LintedConnection, frame: Frame) -> Iterator[str]:
    yield from _never_sent(state, frame, frame.body.message_ids)


@CONSUMER_RULES(
    "redeliver-ids-ignored",
    "Only Shared and Key_Shared redeliver single messages.",
    "Pulsar's PersistentDispatcherSingleActiveConsumer ignores the ids",
    "Omit the ids on Exclusive and Failover: brokers redeliver all unacknowledged messages there.",
    on=["REDELIVER_UNACKNOWLEDGED_MESSAGES"],
    severity=Severity.WARNING,
)
def _consumer_ids(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (consumer := state.consumer(frame)) is not None and not consumer.shared and frame.body.message_ids:
        yield f"{len(frame.body.message_ids)} ids on {consumer.type_name}"


@CONSUMER_RULES(
    "consumer-epoch-goes-back",
    "The consumer_epoch of a consumer never decreases.",
    "PIP-84",
    "Increase consumer_epoch with each redelivery of all messages: it tells older deliveries from newer ones.",
    on=["REDELIVER_UNACKNOWLEDGED_MESSAGES"],
)
def _consumer_epoch(state: LintedConnection, frame: Frame) -> Iterator[str]:
    consumer, body = state.consumer(frame), frame.body
    if consumer is not None and body.HasField("consumer_epoch") and body.consumer_epoch < consumer.epoch:
        yield f"consumer_epoch {body.consumer_epoch} after {consumer.epoch}"


@CONSUMER_RULES(
    "negative-ack-not-delivered",
    "NEGATIVE_ACK names delivered messages of its subscription.",
    _DRAFT,
    "Use ids of MESSAGE: brokers pass over all others.",
    on=["NEGATIVE_ACK"],
)
def _negative_unsent(state: LintedConnection, frame: Frame) -> Iterator[str]:
    yield from _never_sent(state, frame, [*frame.body.negative_acked, *frame.body.returned])


@CONSUMER_RULES(
    "negative-ack-returned",
    "NEGATIVE_ACK does not return an entry that it acknowledges negatively.",
    _DRAFT,
    "Return only entries of which the application has seen nothing.",
    on=["NEGATIVE_ACK"],
)
def _negative_both(state: LintedConnection, frame: Frame) -> Iterator[str]:
    refused = set(map(position_of, frame.body.negative_acked))
    for position in sorted(refused.intersection(map(position_of, frame.body.returned))):
        yield f"{position[0]}:{position[1]} is in both lists"


@CONSUMER_RULES(
    "negative-ack-elsewhere",
    "NEGATIVE_ACK of messages is for Key_Shared.",
    _DRAFT,
    "Send REDELIVER_UNACKNOWLEDGED_MESSAGES alone on other types: no other has an order of keys.",
    on=["NEGATIVE_ACK"],
    severity=Severity.WARNING,
)
def _negative_elsewhere(state: LintedConnection, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is not None and consumer.type != CommandSubscribe.Key_Shared and frame.body.negative_acked:
        yield f"{len(frame.body.negative_acked)} ids on {consumer.type_name}"


@CONSUMER_RULES(
    "active-change-elsewhere",
    "ACTIVE_CONSUMER_CHANGE goes to Failover consumers.",
    "PulsarApi.proto: CommandActiveConsumerChange",
    "Send ACTIVE_CONSUMER_CHANGE only to Failover consumers.",
    on=["ACTIVE_CONSUMER_CHANGE"],
    about=Direction.BROKER,
)
def _consumer_active(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (consumer := state.consumer(frame)) is None or consumer.type != CommandSubscribe.Failover:
        yield f"to consumer {frame.consumer_id}, which is {'unknown' if consumer is None else consumer.type_name}"


_ACK = "PulsarApi.proto: CommandAck"


ACK_RULES = Section("Rules of acknowledgements", on=["ACK"])


@ACK_RULES(
    "ack-not-delivered",
    "ACK names delivered messages of its subscription.",
    "Binary protocol: acknowledgement",
    "Acknowledge the message_id of MESSAGE, on a consumer of the same subscription.",
)
def _ack_unsent(state: LintedConnection, frame: Frame) -> Iterator[str]:
    yield from _never_sent(state, frame, frame.body.message_id)


@ACK_RULES(
    "ack-after-close",
    "A client sends acknowledgements before CLOSE_CONSUMER.",
    "Binary protocol: consumer; Pulsar's ServerCnx drops an ACK for a closed consumer",
    "Flush grouped acknowledgements, then close: the broker drops later ones, and redelivers their messages.",
)
def _ack_after_close(state: LintedConnection, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    # after UNSUBSCRIBE no message can be redelivered
    if consumer is not None and consumer.phase is Phase.CLOSED_BY_CLIENT and consumer.ending == "CLOSE_CONSUMER":
        yield f"ACK for consumer {frame.consumer_id}, which its client had closed"


@ACK_RULES(
    "ack-twice",
    "A client acknowledges a message once for each delivery.",
    "Binary protocol: acknowledgement",
    "Forget a message when it is acknowledged.",
    severity=Severity.WARNING,
)
def _ack_twice(state: LintedConnection, frame: Frame) -> Iterator[str]:
    subscription = _subscription(state, frame)
    if subscription is None or _is_cumulative(frame):
        return
    for message_id in frame.body.message_id:
        position = position_of(message_id)
        if position in subscription.acked and position not in subscription.again and not message_id.ack_set:
            yield f"{position[0]}:{position[1]} is acknowledged already"


@ACK_RULES(
    "ack-of-nothing",
    "ACK names a message.",
    _ACK,
    "Send no ACK without a message to acknowledge.",
    severity=Severity.WARNING,
)
def _ack_nothing(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if not frame.body.message_id and not _is_cumulative(frame):
        yield "an ACK without message_id"


@ACK_RULES(
    "cumulative-on-shared",
    "Shared and Key_Shared have no cumulative ACK.",
    _ACK,
    "Acknowledge messages individually: brokers answer a cumulative ACK with success, and ignore it.",
)
def _ack_cumulative(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if _is_cumulative(frame) and (consumer := state.consumer(frame)) is not None and consumer.shared:
        yield f"a cumulative ACK on {consumer.type_name}"


@ACK_RULES(
    "cumulative-of-many",
    "A cumulative ACK names one message.",
    _ACK,
    "Name the last message.",
)
def _ack_many(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if _is_cumulative(frame) and len(frame.body.message_id) != 1:
        yield f"a cumulative ACK of {len(frame.body.message_id)} ids"


@ACK_RULES(
    "cumulative-goes-back",
    "A cumulative ACK names no message before that of the previous one.",
    "Pulsar's ManagedCursor: the mark-delete position only moves forward",
    "Remember the last cumulative acknowledgement, which includes all earlier messages.",
    severity=Severity.WARNING,
)
def _ack_back(state: LintedConnection, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if not _is_cumulative(frame) or consumer is None or consumer.shared:
        return
    for message_id in frame.body.message_id:
        position = position_of(message_id)
        if position < consumer.cumulative:
            yield f"{position[0]}:{position[1]} after {consumer.cumulative[0]}:{consumer.cumulative[1]}"


_ACK_SETS = "PIP-54"


def _sets_of(state: LintedConnection, frame: Frame) -> Iterator[tuple[Subscription, Position, int, int]]:
    """Yield the ack sets of a frame: subscription, position, number of messages (0 outside a batch) and bits."""
    subscription = _subscription(state, frame)
    if subscription is None:
        return
    for message_id in frame.body.message_id:
        if message_id.ack_set:
            position = position_of(message_id)
            size = subscription.batch_size(position)
            if size is not None:
                yield subscription, position, size, bits_of(message_id.ack_set)


ACK_SET_RULES = Section("Rules of ack sets: acknowledgement of single messages of a batch (PIP-54)", on=["ACK"])


@ACK_SET_RULES(
    "ack-set-of-no-batch",
    "Only the acknowledgement of a batch has an ack set.",
    _ACK_SETS,
    "Omit ack_set for a message outside a batch: the broker would keep the message as partly acknowledged.",
)
def _set_no_batch(state: LintedConnection, frame: Frame) -> Iterator[str]:
    for _, position, size, _ in _sets_of(state, frame):
        if not size:
            yield f"an ack set for {position[0]}:{position[1]}, which is not a batch"


@ACK_SET_RULES(
    "ack-set-too-long",
    "An ack set has a bit for each message of its batch, and no more.",
    _ACK_SETS,
    "Limit the set to num_messages_in_batch bits, and do not fill its last word.",
)
def _set_too_long(state: LintedConnection, frame: Frame) -> Iterator[str]:
    for _, position, size, bits in _sets_of(state, frame):
        if size and bits >> size:
            yield f"bit {bits.bit_length() - 1} for {position[0]}:{position[1]}, a batch of {size}"


@ACK_SET_RULES(
    "ack-set-polarity",
    "A 1 bit of an ack set stands for an unacknowledged message.",
    _ACK_SETS,
    "Begin with 1 bits, and clear the bit of each acknowledged message.",
)
def _set_polarity(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if _is_cumulative(frame):
        return
    for subscription, position, size, bits in _sets_of(state, frame):
        if not size or bits >> size:
            continue
        cleared = full(size) & ~bits
        done = subscription.cleared(position) == full(size) and position not in subscription.again
        if not cleared:
            yield f"all {size} bits of {position[0]}:{position[1]} are 1, which acknowledges nothing"
        elif done and cleared.bit_count() > 1:
            yield f"{position[0]}:{position[1]} was completely acknowledged by earlier ack sets"


@ACK_SET_RULES(
    "ack-set-repeated",
    "An ack set acknowledges at least one unacknowledged message.",
    _ACK_SETS,
    "Forget a message when it is acknowledged.",
    severity=Severity.WARNING,
)
def _set_repeated(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if _is_cumulative(frame):
        return
    for subscription, position, size, bits in _sets_of(state, frame):
        cleared = full(size) & ~bits
        done = subscription.cleared(position)
        wrong_way = done == full(size) and cleared.bit_count() > 1  # the rule ack-set-polarity reports this
        if cleared and not cleared & ~done and not wrong_way and position not in subscription.again:
            yield f"no new message of {position[0]}:{position[1]}"


_TRANSACTIONS = "PIP-31"


TRANSACTION_RULES = Section("Rules of transactions")


@TRANSACTION_RULES(
    "coordinator-not-connected",
    "NEW_TXN goes to a coordinator that the client connected to with TC_CLIENT_CONNECT_REQUEST.",
    "PulsarApi.proto: CommandTcClientConnectRequest, since version 19",
    "Look up transaction_coordinator_assign, and send TC_CLIENT_CONNECT_REQUEST to the owner of each partition.",
    on=["NEW_TXN"],
)
def _transaction_not_connected(state: LintedConnection, frame: Frame) -> Iterator[str]:
    version = state.conversation.protocol_version or 0
    if version >= 19 and frame.body.tc_id not in state.coordinators:
        yield f"NEW_TXN for coordinator {frame.body.tc_id}"


@TRANSACTION_RULES(
    "transaction-not-open",
    "A transaction was opened by NEW_TXN_RESPONSE, and not ended by END_TXN.",
    _TRANSACTIONS,
    "Keep the ids of NEW_TXN_RESPONSE, and start no work in an ending transaction: its messages stay invisible.",
    on=["SEND", "ACK", "ADD_PARTITION_TO_TXN", "ADD_SUBSCRIPTION_TO_TXN", "END_TXN"],
)
def _transaction_not_open(state: LintedConnection, frame: Frame) -> Iterator[str]:
    transaction = transaction_of(frame.body)
    if transaction is None or state.shared is None or not state.shared.whole:
        return
    wrong = state.shared.transactions.wrong_with(transaction)
    if wrong:
        yield f"{frame.name} in ({transaction[0]},{transaction[1]}), which {wrong}"


@TRANSACTION_RULES(
    "transaction-half-named",
    "A command names both numbers of a transaction.",
    "PulsarApi.proto: txnid_most_bits, txnid_least_bits",
    "Set txnid_most_bits and txnid_least_bits.",
    on=["SEND", "ACK"],
)
def _transaction_half(state: LintedConnection, frame: Frame) -> Iterator[str]:
    given = [name for name in ("txnid_most_bits", "txnid_least_bits") if frame.body.HasField(name)]
    if len(given) == 1:
        yield f"{frame.name} with {given[0]} alone"
