"""Rules of consumers at work: deliveries, acknowledgements, ack sets (PIP-54); and of transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.members import Phase, Position
from pulsarium.capture.lint.producer_rules import close_ignored
from pulsarium.capture.lint.rule import Section, Severity
from pulsarium.capture.lint.shared import Subscription, full, position_of, transaction_of
from pulsarium.capture.lint.state import State
from pulsarium.proto.commands import Direction
from pulsarium.proto.generated.PulsarApi_pb2 import CommandAck, CommandSubscribe, MessageIdData
from pulsarium.proto.message_id import bits_of

_CONSUMER = "Binary protocol: consumer"
_FLOW = "Binary protocol: flow control"
_USE = [
    "ACK",
    "CONSUMER_STATS",
    "FLOW",
    "GET_LAST_MESSAGE_ID",
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "SEEK",
    "UNSUBSCRIBE",
]
_GONE = (Phase.CLOSED_BY_CLIENT, Phase.CLOSED_BY_BROKER)
_MOST_PERMITS = 2**31 - 1


def _is_cumulative(frame: Frame) -> bool:
    return bool(frame.name == "ACK" and frame.body.ack_type == CommandAck.Cumulative)


def _subscription(state: State, frame: Frame) -> Subscription | None:
    """Return what is known of the subscription whose consumer a command names; None if that may not be all."""
    consumer = state.consumer(frame)
    if consumer is None or state.shared is None or not state.shared.whole:
        return None
    return state.shared.of(consumer.topic, consumer.subscription)


def _never_sent(state: State, frame: Frame, message_ids: Iterable[MessageIdData]) -> Iterator[str]:
    consumer, subscription = state.consumer(frame), _subscription(state, frame)
    if consumer is None or subscription is None:
        return
    for message_id in message_ids:
        position = position_of(message_id)
        # A cumulative one may name the entry before a batch that is not done.
        known = position <= subscription.sent.last if _is_cumulative(frame) else position in subscription.sent
        if not known:
            yield f"{position[0]}:{position[1]} was never sent to {consumer.subscription!r}"


CONSUMER_RULES = Section("Rules of consumers: who may be spoken to, permits, deliveries, SEEK")


@CONSUMER_RULES(
    "unknown-consumer",
    "A command for a consumer names one of its connection.",
    _CONSUMER,
    "Keep consumer ids by connection.",
    on=_USE,
)
def _consumer_unknown(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is None and state.consumers.whole:
        yield f"{frame.name} for consumer {frame.consumer_id}, which nobody opened"
    elif consumer is not None and consumer.phase is Phase.CLOSED_BY_CLIENT and frame.name != "ACK":
        yield f"{frame.name} for consumer {frame.consumer_id}, which its client had closed"


@CONSUMER_RULES(
    "used-before-subscribed",
    "A consumer is used once SUBSCRIBE is answered.",
    _CONSUMER,
    "Wait for SUCCESS: permits that come before it are lost, and requests are refused.",
    on=_USE,
)
def _consumer_early(state: State, frame: Frame) -> Iterator[str]:
    if (consumer := state.consumer(frame)) is not None and consumer.phase is Phase.OPENING:
        yield f"{frame.name} for consumer {frame.consumer_id}, whose SUBSCRIBE is not answered"


@CONSUMER_RULES(
    "consumer-close-ignored",
    "A consumer that its broker closed is opened again before it is used.",
    "Binary protocol: CLOSE_CONSUMER from a broker",
    "React to CLOSE_CONSUMER: look the topic up and subscribe again; what is sent meanwhile is dropped.",
    on=_USE,
)
def _consumer_close_ignored(state: State, frame: Frame) -> Iterator[str]:
    yield from close_ignored(frame, state.consumer(frame), f"consumer {frame.consumer_id}")


@CONSUMER_RULES(
    "message-to-nobody",
    "MESSAGE goes to a consumer that is open.",
    _CONSUMER,
    "Send nothing to a consumer that was closed.",
    on=["MESSAGE"],
    about=Direction.BROKER,
)
def _consumer_nobody(state: State, frame: Frame) -> Iterator[str]:
    if (consumer := state.consumer(frame)) is None or consumer.phase in _GONE:
        yield f"MESSAGE to consumer {frame.consumer_id}, which is not open"


@CONSUMER_RULES(
    "permits-exceeded",
    "A consumer is sent no more entries than it has given permits.",
    _FLOW,
    "Count permits in messages.",
    on=["MESSAGE"],
    about=Direction.BROKER,
)
def _consumer_permits(state: State, frame: Frame) -> Iterator[str]:
    if (consumer := state.consumer(frame)) is not None and consumer.entries <= 0:
        yield f"MESSAGE to consumer {frame.consumer_id}, whose permits are at {consumer.permits}"


@CONSUMER_RULES(
    "flow-of-nothing",
    "FLOW gives at least one permit, and at most 2^31-1.",
    _FLOW,
    "Send FLOW when there is room for messages: brokers close a connection that gives none.",
    on=["FLOW"],
)
def _consumer_no_permits(state: State, frame: Frame) -> Iterator[str]:
    permits = frame.body.messagePermits
    if not 0 < permits <= _MOST_PERMITS:
        yield f"FLOW of {permits}"


@CONSUMER_RULES(
    "flow-overflow",
    "The permits of a consumer fit into 31 bits.",
    _FLOW,
    "Give as many permits as there is room for: they are added up, and a sum that overflows stops the consumer.",
    on=["FLOW"],
)
def _consumer_overflow(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if (
        consumer is not None
        and frame.body.messagePermits <= _MOST_PERMITS < consumer.permits + frame.body.messagePermits
    ):
        yield f"FLOW of {frame.body.messagePermits} to consumer {frame.consumer_id}, which has {consumer.permits}"


@CONSUMER_RULES(
    "seek-target",
    "SEEK names a message or a time, one of them.",
    "PulsarApi.proto: CommandSeek; ServerError MetadataError",
    "Set message_id or message_publish_time.",
    on=["SEEK"],
)
def _consumer_target(state: State, frame: Frame) -> Iterator[str]:
    given = [name for name in ("message_id", "message_publish_time") if frame.body.HasField(name)]
    if len(given) != 1:
        yield "SEEK to both a message and a time" if given else "SEEK to nowhere"


@CONSUMER_RULES(
    "second-seek",
    "A consumer seeks once SEEK before it is answered.",
    "PulsarApi.proto: CommandSeek; Pulsar fences a subscription while it seeks",
    "Wait for the answer of the first.",
    on=["SEEK"],
)
def _consumer_second_seek(state: State, frame: Frame) -> Iterator[str]:
    if (consumer := state.consumer(frame)) is not None and consumer.seeking:
        yield f"SEEK of consumer {frame.consumer_id}, which is seeking"


@CONSUMER_RULES(
    "redeliver-not-delivered",
    "REDELIVER_UNACKNOWLEDGED_MESSAGES names what its subscription was sent.",
    "PulsarApi.proto: CommandRedeliverUnacknowledgedMessages",
    "Take ids of MESSAGE; no ids mean all messages of the consumer.",
    on=["REDELIVER_UNACKNOWLEDGED_MESSAGES"],
)
def _consumer_redeliver(state: State, frame: Frame) -> Iterator[str]:
    yield from _never_sent(state, frame, frame.body.message_ids)


@CONSUMER_RULES(
    "redeliver-ids-ignored",
    "Single messages are redelivered on Shared and Key_Shared.",
    "Pulsar's PersistentDispatcherSingleActiveConsumer ignores the ids",
    "Leave the ids out on Exclusive and Failover: everything unacknowledged comes again there.",
    on=["REDELIVER_UNACKNOWLEDGED_MESSAGES"],
    severity=Severity.WARNING,
)
def _consumer_ids(state: State, frame: Frame) -> Iterator[str]:
    if (consumer := state.consumer(frame)) is not None and not consumer.shared and frame.body.message_ids:
        yield f"{len(frame.body.message_ids)} ids on {consumer.type_name}"


@CONSUMER_RULES(
    "consumer-epoch-goes-back",
    "The consumer_epoch of a consumer never falls.",
    "PIP-84",
    "Count consumer_epoch up with each redelivery of everything: by it older messages are told from newer ones.",
    on=["REDELIVER_UNACKNOWLEDGED_MESSAGES"],
)
def _consumer_epoch(state: State, frame: Frame) -> Iterator[str]:
    consumer, body = state.consumer(frame), frame.body
    if consumer is not None and body.HasField("consumer_epoch") and body.consumer_epoch < consumer.epoch:
        yield f"consumer_epoch {body.consumer_epoch} after {consumer.epoch}"


@CONSUMER_RULES(
    "active-change-elsewhere",
    "ACTIVE_CONSUMER_CHANGE goes to consumers of Failover.",
    "PulsarApi.proto: CommandActiveConsumerChange",
    "Send it to Failover.",
    on=["ACTIVE_CONSUMER_CHANGE"],
    about=Direction.BROKER,
)
def _consumer_active(state: State, frame: Frame) -> Iterator[str]:
    if (consumer := state.consumer(frame)) is None or consumer.type != CommandSubscribe.Failover:
        yield f"to consumer {frame.consumer_id}, which is {'nobody' if consumer is None else consumer.type_name}"


_ACK = "PulsarApi.proto: CommandAck"


ACK_RULES = Section("Rules of acknowledgements", on=["ACK"])


@ACK_RULES(
    "ack-not-delivered",
    "ACK names what its subscription was sent.",
    "Binary protocol: acknowledgement",
    "Acknowledge the message_id of MESSAGE, on a consumer of the same subscription.",
)
def _ack_unsent(state: State, frame: Frame) -> Iterator[str]:
    yield from _never_sent(state, frame, frame.body.message_id)


@ACK_RULES(
    "ack-after-close",
    "Acknowledgements are sent before CLOSE_CONSUMER.",
    "Binary protocol: consumer; Pulsar's ServerCnx drops an ACK for a consumer that is gone",
    "Flush grouped acknowledgements, then close: what comes later is lost, and its messages are delivered again.",
)
def _ack_after_close(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    # After UNSUBSCRIBE there is nothing left to be delivered again.
    if consumer is not None and consumer.phase is Phase.CLOSED_BY_CLIENT and consumer.ending == "CLOSE_CONSUMER":
        yield f"ACK for consumer {frame.consumer_id}, which its client had closed"


@ACK_RULES(
    "ack-twice",
    "A message is acknowledged once for each time it is delivered.",
    "Binary protocol: acknowledgement",
    "Forget a message with its acknowledgement.",
    severity=Severity.WARNING,
)
def _ack_twice(state: State, frame: Frame) -> Iterator[str]:
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
    "Send no ACK while there is nothing to acknowledge.",
    severity=Severity.WARNING,
)
def _ack_nothing(state: State, frame: Frame) -> Iterator[str]:
    if not frame.body.message_id and not _is_cumulative(frame):
        yield "an ACK without message_id"


@ACK_RULES(
    "cumulative-on-shared",
    "Shared and Key_Shared know no cumulative ACK.",
    _ACK,
    "Acknowledge one by one: brokers answer as if it had been done, and do nothing.",
)
def _ack_cumulative(state: State, frame: Frame) -> Iterator[str]:
    if _is_cumulative(frame) and (consumer := state.consumer(frame)) is not None and consumer.shared:
        yield f"a cumulative ACK on {consumer.type_name}"


@ACK_RULES(
    "cumulative-of-many",
    "A cumulative ACK names one message.",
    _ACK,
    "Name the last message.",
)
def _ack_many(state: State, frame: Frame) -> Iterator[str]:
    if _is_cumulative(frame) and len(frame.body.message_id) != 1:
        yield f"a cumulative ACK of {len(frame.body.message_id)} ids"


@ACK_RULES(
    "cumulative-goes-back",
    "A cumulative ACK names no message before the last one.",
    "Pulsar's ManagedCursor: the mark-delete position only rises",
    "Remember the last cumulative acknowledgement; earlier messages are acknowledged with it.",
    severity=Severity.WARNING,
)
def _ack_back(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if not _is_cumulative(frame) or consumer is None or consumer.shared:
        return
    for message_id in frame.body.message_id:
        position = position_of(message_id)
        if position < consumer.cumulative:
            yield f"{position[0]}:{position[1]} after {consumer.cumulative[0]}:{consumer.cumulative[1]}"


_ACK_SETS = "PIP-54"


def _sets_of(state: State, frame: Frame) -> Iterator[tuple[Subscription, Position, int, int]]:
    """Each ack set: the subscription, the batch, how many messages it has (0: it is none), the bits."""
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
    "Only the ack of a batch has an ack set.",
    _ACK_SETS,
    "Leave ack_set out for a message alone: the broker would keep it as a message half acknowledged.",
)
def _set_no_batch(state: State, frame: Frame) -> Iterator[str]:
    for _, position, size, _ in _sets_of(state, frame):
        if not size:
            yield f"an ack set for {position[0]}:{position[1]}, which is no batch"


@ACK_SET_RULES(
    "ack-set-too-long",
    "An ack set has a bit for each message of its batch, and no more.",
    _ACK_SETS,
    "Make the set as long as num_messages_in_batch, not as long as its words.",
)
def _set_too_long(state: State, frame: Frame) -> Iterator[str]:
    for _, position, size, bits in _sets_of(state, frame):
        if size and bits >> size:
            yield f"bit {bits.bit_length() - 1} for {position[0]}:{position[1]}, a batch of {size}"


@ACK_SET_RULES(
    "ack-set-polarity",
    "A bit of an ack set that is 1 is a message that is not acknowledged yet.",
    _ACK_SETS,
    "Begin with ones and clear the bit of each message that is acknowledged.",
)
def _set_polarity(state: State, frame: Frame) -> Iterator[str]:
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
            yield f"{position[0]}:{position[1]} was acknowledged whole by the ack sets before"


@ACK_SET_RULES(
    "ack-set-repeated",
    "An ack set acknowledges a message that was not acknowledged before.",
    _ACK_SETS,
    "Forget a message with its acknowledgement.",
    severity=Severity.WARNING,
)
def _set_repeated(state: State, frame: Frame) -> Iterator[str]:
    if _is_cumulative(frame):
        return
    for subscription, position, size, bits in _sets_of(state, frame):
        cleared = full(size) & ~bits
        done = subscription.cleared(position)
        wrong_way = done == full(size) and cleared.bit_count() > 1  # that is for ack-set-polarity
        if cleared and not cleared & ~done and not wrong_way and position not in subscription.again:
            yield f"nothing new of {position[0]}:{position[1]}"


_TRANSACTIONS = "PIP-31"


TRANSACTION_RULES = Section("Rules of transactions, as far as a client speaks of them")


@TRANSACTION_RULES(
    "coordinator-not-connected",
    "NEW_TXN goes to a coordinator that TC_CLIENT_CONNECT_REQUEST has asked for.",
    "PulsarApi.proto: CommandTcClientConnectRequest, since version 19",
    "Look transaction_coordinator_assign up, connect to the owner of each partition and ask for its coordinator there.",
    on=["NEW_TXN"],
)
def _transaction_not_connected(state: State, frame: Frame) -> Iterator[str]:
    version = state.conversation.protocol_version or 0
    if version >= 19 and frame.body.tc_id not in state.coordinators:
        yield f"NEW_TXN for coordinator {frame.body.tc_id}"


@TRANSACTION_RULES(
    "transaction-not-open",
    "A transaction is one that NEW_TXN_RESPONSE gave out, and that END_TXN did not end.",
    _TRANSACTIONS,
    "Keep the ids of NEW_TXN_RESPONSE; begin no work in a transaction that ends: what is sent stays invisible.",
    on=["SEND", "ACK", "ADD_PARTITION_TO_TXN", "ADD_SUBSCRIPTION_TO_TXN", "END_TXN"],
)
def _transaction_not_open(state: State, frame: Frame) -> Iterator[str]:
    transaction = transaction_of(frame.body)
    if transaction is None or state.shared is None or not state.shared.whole:
        return
    wrong = state.shared.transactions.wrong_with(transaction)
    if wrong:
        yield f"{frame.name} in ({transaction[0]},{transaction[1]}), which {wrong}"


@TRANSACTION_RULES(
    "transaction-half-named",
    "A transaction has two numbers, and both are named.",
    "PulsarApi.proto: txnid_most_bits, txnid_least_bits",
    "Set txnid_most_bits and txnid_least_bits.",
    on=["SEND", "ACK"],
)
def _transaction_half(state: State, frame: Frame) -> Iterator[str]:
    given = [name for name in ("txnid_most_bits", "txnid_least_bits") if frame.body.HasField(name)]
    if len(given) == 1:
        yield f"{frame.name} with {given[0]} alone"
