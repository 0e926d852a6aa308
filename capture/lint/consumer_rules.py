"""Rules of consumers: who may be spoken to, permits, deliveries, SEEK."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.members import Phase
from pulsarium.capture.lint.producer_rules import NOTICED_NS
from pulsarium.capture.lint.rule import Severity, rule
from pulsarium.capture.lint.shared import position_of
from pulsarium.capture.lint.state import State
from pulsarium.proto.commands import Direction
from pulsarium.proto.generated.PulsarApi_pb2 import CommandSubscribe

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


@rule(
    "unknown-consumer",
    "A command for a consumer names one of its connection.",
    _CONSUMER,
    "Keep consumer ids by connection.",
    on=_USE,
)
def _unknown(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is None and state.consumers.whole:
        yield f"{frame.name} for consumer {frame.consumer_id}, which nobody opened"
    elif consumer is not None and consumer.phase is Phase.CLOSED_BY_CLIENT and frame.name != "ACK":
        yield f"{frame.name} for consumer {frame.consumer_id}, which its client had closed"


@rule(
    "used-before-subscribed",
    "A consumer is used once SUBSCRIBE is answered.",
    _CONSUMER,
    "Wait for SUCCESS: permits that come before it are lost, and requests are refused.",
    on=_USE,
)
def _early(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is not None and consumer.phase is Phase.OPENING:
        yield f"{frame.name} for consumer {frame.consumer_id}, whose SUBSCRIBE is not answered"


@rule(
    "consumer-close-ignored",
    "A consumer that its broker closed is opened again before it is used.",
    "Binary protocol: CLOSE_CONSUMER from a broker",
    "React to CLOSE_CONSUMER: look the topic up and subscribe again; what is sent meanwhile is dropped.",
    on=_USE,
)
def _close_ignored(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is None or consumer.phase is not Phase.CLOSED_BY_BROKER:
        return
    since = frame.record.monotonic_ns - consumer.closed_ns
    if since >= NOTICED_NS:
        yield f"{frame.name} for consumer {frame.consumer_id}, which its broker closed {since / 1e9:.1f} s ago"


@rule(
    "message-to-nobody",
    "MESSAGE goes to a consumer that is open.",
    _CONSUMER,
    "Send nothing to a consumer that was closed.",
    on=["MESSAGE"],
    about=Direction.BROKER,
)
def _nobody(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is None or consumer.phase in _GONE:
        yield f"MESSAGE to consumer {frame.consumer_id}, which is not open"


@rule(
    "permits-exceeded",
    "A consumer is sent no more entries than it has given permits.",
    _FLOW,
    "Count permits in messages.",
    on=["MESSAGE"],
    about=Direction.BROKER,
)
def _permits(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is not None and consumer.entries <= 0:
        yield f"MESSAGE to consumer {frame.consumer_id}, whose permits are at {consumer.permits}"


@rule(
    "flow-of-nothing",
    "FLOW gives at least one permit, and at most 2^31-1.",
    _FLOW,
    "Send FLOW when there is room for messages: brokers close a connection that gives none.",
    on=["FLOW"],
)
def _no_permits(state: State, frame: Frame) -> Iterator[str]:
    permits = frame.body.messagePermits
    if not 0 < permits <= _MOST_PERMITS:
        yield f"FLOW of {permits}"


@rule(
    "flow-overflow",
    "The permits of a consumer fit into 31 bits.",
    _FLOW,
    "Give as many permits as there is room for: they are added up, and a sum that overflows stops the consumer.",
    on=["FLOW"],
)
def _overflow(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if (
        consumer is not None
        and frame.body.messagePermits <= _MOST_PERMITS < consumer.permits + frame.body.messagePermits
    ):
        yield f"FLOW of {frame.body.messagePermits} to consumer {frame.consumer_id}, which has {consumer.permits}"


@rule(
    "seek-target",
    "SEEK names a message or a time, one of them.",
    "PulsarApi.proto: CommandSeek; ServerError MetadataError",
    "Set message_id or message_publish_time.",
    on=["SEEK"],
)
def _target(state: State, frame: Frame) -> Iterator[str]:
    given = [name for name in ("message_id", "message_publish_time") if frame.body.HasField(name)]
    if len(given) != 1:
        yield "SEEK to both a message and a time" if given else "SEEK to nowhere"


@rule(
    "second-seek",
    "A consumer seeks once SEEK before it is answered.",
    "PulsarApi.proto: CommandSeek; Pulsar fences a subscription while it seeks",
    "Wait for the answer of the first.",
    on=["SEEK"],
)
def _second_seek(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is not None and consumer.seeking:
        yield f"SEEK of consumer {frame.consumer_id}, which is seeking"


@rule(
    "redeliver-not-delivered",
    "REDELIVER_UNACKNOWLEDGED_MESSAGES names what its subscription was sent.",
    "PulsarApi.proto: CommandRedeliverUnacknowledgedMessages",
    "Take ids of MESSAGE; no ids mean all messages of the consumer.",
    on=["REDELIVER_UNACKNOWLEDGED_MESSAGES"],
)
def _redeliver(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is None or state.shared is None or not state.shared.whole:
        return
    sent = state.shared.of(consumer.topic, consumer.subscription).sent
    for message_id in frame.body.message_ids:
        position = position_of(message_id)
        if position not in sent:
            yield f"{position[0]}:{position[1]} was never sent to {consumer.subscription!r}"


@rule(
    "redeliver-ids-ignored",
    "Single messages are redelivered on Shared and Key_Shared.",
    "Pulsar's PersistentDispatcherSingleActiveConsumer ignores the ids",
    "Leave the ids out on Exclusive and Failover: everything unacknowledged comes again there.",
    on=["REDELIVER_UNACKNOWLEDGED_MESSAGES"],
    severity=Severity.WARNING,
)
def _ids(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is not None and not consumer.shared and frame.body.message_ids:
        yield f"{len(frame.body.message_ids)} ids on {consumer.type_name}"


@rule(
    "consumer-epoch-goes-back",
    "The consumer_epoch of a consumer never falls.",
    "PIP-84",
    "Count consumer_epoch up with each redelivery of everything: by it older messages are told from newer ones.",
    on=["REDELIVER_UNACKNOWLEDGED_MESSAGES"],
)
def _epoch(state: State, frame: Frame) -> Iterator[str]:
    consumer, body = state.consumer(frame), frame.body
    if consumer is not None and body.HasField("consumer_epoch") and body.consumer_epoch < consumer.epoch:
        yield f"consumer_epoch {body.consumer_epoch} after {consumer.epoch}"


@rule(
    "active-change-elsewhere",
    "ACTIVE_CONSUMER_CHANGE goes to consumers of Failover.",
    "PulsarApi.proto: CommandActiveConsumerChange",
    "Send it to Failover.",
    on=["ACTIVE_CONSUMER_CHANGE"],
    about=Direction.BROKER,
)
def _active(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is None or consumer.type != CommandSubscribe.Failover:
        yield f"to consumer {frame.consumer_id}, which is {'nobody' if consumer is None else consumer.type_name}"
