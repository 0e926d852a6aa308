"""Rules of consumers: permits, deliveries, acknowledgements."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.proto.commands import Direction
from pulsarium.proto.generated.PulsarApi_pb2 import CommandAck, CommandSubscribe
from pulsarium.proto.lint.frames import Frame
from pulsarium.proto.lint.rule import rule
from pulsarium.proto.lint.state import Phase, State

_SENT_TO = {
    "ACK",
    "CLOSE_CONSUMER",
    "CONSUMER_STATS",
    "FLOW",
    "GET_LAST_MESSAGE_ID",
    "REDELIVER_UNACKNOWLEDGED_MESSAGES",
    "SEEK",
    "UNSUBSCRIBE",
}
_GONE = (Phase.CLOSED_BY_CLIENT, Phase.CLOSED_BY_BROKER)


@rule(
    "consumer-id-in-use",
    "A consumer_id names one consumer of a connection at a time",
    "PulsarApi.proto: CommandSubscribe",
)
def _in_use(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumers.get(frame.consumer_id or 0)
    if frame.name == "SUBSCRIBE" and consumer is not None and consumer.phase is Phase.OPEN:
        yield f"consumer {frame.consumer_id} stands already, on {consumer.topic}"


@rule("unknown-consumer", "A command for a consumer names one of its connection", "Binary protocol: consumer")
def _unknown(state: State, frame: Frame) -> Iterator[str]:
    if frame.name in _SENT_TO and frame.sender is Direction.CLIENT:
        consumer = state.consumers.get(frame.consumer_id or 0)
        if consumer is None:
            yield f"{frame.name} for consumer {frame.consumer_id}, which nobody opened"
        elif consumer.phase is Phase.CLOSED_BY_CLIENT:
            yield f"{frame.name} for consumer {frame.consumer_id}, which its client had closed"


@rule("message-to-nobody", "MESSAGE goes to a consumer that is open", "Binary protocol: consumer")
def _nobody(state: State, frame: Frame) -> Iterator[str]:
    if frame.name == "MESSAGE":
        consumer = state.consumers.get(frame.consumer_id or 0)
        if consumer is None or consumer.phase in _GONE:
            yield f"MESSAGE to consumer {frame.consumer_id}, which is not open"


@rule(
    "permits-exceeded", "A consumer is sent no more entries than it has given permits", "Binary protocol: flow control"
)
def _permits(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumers.get(frame.consumer_id or 0)
    if frame.name == "MESSAGE" and consumer is not None and consumer.entries <= 0:
        yield f"MESSAGE to consumer {frame.consumer_id}, whose permits are at {consumer.permits}"


@rule("ack-not-delivered", "ACK names what its subscription was sent", "Binary protocol: acknowledgement")
def _ack(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumers.get(frame.consumer_id or 0)
    if frame.name != "ACK" or consumer is None or state.deliveries is None or not state.deliveries.whole:
        return
    sent = state.deliveries.of(consumer.topic, consumer.subscription)
    for message_id in frame.body.message_id:
        position = (message_id.ledgerId, message_id.entryId)
        # A cumulative one may name the entry before a batch that is not done.
        known = position <= sent.last if frame.body.ack_type == CommandAck.Cumulative else position in sent
        if not known:
            yield f"{position[0]}:{position[1]} was never sent to {consumer.subscription!r}"


@rule("cumulative-on-shared", "Shared and Key_Shared know no cumulative ACK", "PulsarApi.proto: CommandAck")
def _cumulative(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumers.get(frame.consumer_id or 0)
    if (
        frame.name == "ACK"
        and frame.body.ack_type == CommandAck.Cumulative
        and consumer is not None
        and consumer.shared
    ):
        yield f"a cumulative ACK on {consumer.type_name}"


@rule("cumulative-of-many", "A cumulative ACK names one message", "PulsarApi.proto: CommandAck")
def _many(state: State, frame: Frame) -> Iterator[str]:
    if frame.name == "ACK" and frame.body.ack_type == CommandAck.Cumulative and len(frame.body.message_id) != 1:
        yield f"a cumulative ACK of {len(frame.body.message_id)} ids"


@rule("active-change-elsewhere", "ACTIVE_CONSUMER_CHANGE goes to consumers of Failover", "PulsarApi.proto")
def _active(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumers.get(frame.consumer_id or 0)
    if frame.name == "ACTIVE_CONSUMER_CHANGE" and (consumer is None or consumer.type != CommandSubscribe.Failover):
        yield f"to consumer {frame.consumer_id}, which is {'nobody' if consumer is None else consumer.type_name}"
