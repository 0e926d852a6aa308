"""Rules of acknowledgements."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.members import Phase
from pulsarium.capture.lint.rule import Severity, rule
from pulsarium.capture.lint.shared import position_of
from pulsarium.capture.lint.state import State
from pulsarium.proto.generated.PulsarApi_pb2 import CommandAck

_ACK = "PulsarApi.proto: CommandAck"


def _is_cumulative(frame: Frame) -> bool:
    return bool(frame.body.ack_type == CommandAck.Cumulative)


@rule(
    "ack-not-delivered",
    "ACK names what its subscription was sent.",
    "Binary protocol: acknowledgement",
    "Acknowledge the message_id of MESSAGE, on a consumer of the same subscription.",
    on=["ACK"],
)
def _unsent(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is None or state.shared is None or not state.shared.whole:
        return
    sent = state.shared.of(consumer.topic, consumer.subscription).sent
    for message_id in frame.body.message_id:
        position = position_of(message_id)
        # A cumulative one may name the entry before a batch that is not done.
        known = position <= sent.last if _is_cumulative(frame) else position in sent
        if not known:
            yield f"{position[0]}:{position[1]} was never sent to {consumer.subscription!r}"


@rule(
    "ack-after-close",
    "Acknowledgements are sent before CLOSE_CONSUMER.",
    "Binary protocol: consumer; Pulsar's ServerCnx drops an ACK for a consumer that is gone",
    "Flush grouped acknowledgements, then close: what comes later is lost, and its messages are delivered again.",
    on=["ACK"],
)
def _after_close(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    # After UNSUBSCRIBE there is nothing left to be delivered again.
    if consumer is not None and consumer.phase is Phase.CLOSED_BY_CLIENT and consumer.ending == "CLOSE_CONSUMER":
        yield f"ACK for consumer {frame.consumer_id}, which its client had closed"


@rule(
    "ack-twice",
    "A message is acknowledged once for each time it is delivered.",
    "Binary protocol: acknowledgement",
    "Forget a message with its acknowledgement.",
    on=["ACK"],
    severity=Severity.WARNING,
)
def _twice(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if consumer is None or state.shared is None or not state.shared.whole or _is_cumulative(frame):
        return
    subscription = state.shared.of(consumer.topic, consumer.subscription)
    for message_id in frame.body.message_id:
        position = position_of(message_id)
        if position in subscription.acked and position not in subscription.again and not message_id.ack_set:
            yield f"{position[0]}:{position[1]} is acknowledged already"


@rule(
    "ack-of-nothing",
    "ACK names a message.",
    _ACK,
    "Send no ACK while there is nothing to acknowledge.",
    on=["ACK"],
    severity=Severity.WARNING,
)
def _nothing(state: State, frame: Frame) -> Iterator[str]:
    if not frame.body.message_id and not _is_cumulative(frame):
        yield "an ACK without message_id"


@rule(
    "cumulative-on-shared",
    "Shared and Key_Shared know no cumulative ACK.",
    _ACK,
    "Acknowledge one by one: brokers answer as if it had been done, and do nothing.",
    on=["ACK"],
)
def _cumulative(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if _is_cumulative(frame) and consumer is not None and consumer.shared:
        yield f"a cumulative ACK on {consumer.type_name}"


@rule(
    "cumulative-of-many",
    "A cumulative ACK names one message.",
    _ACK,
    "Name the last message.",
    on=["ACK"],
)
def _many(state: State, frame: Frame) -> Iterator[str]:
    if _is_cumulative(frame) and len(frame.body.message_id) != 1:
        yield f"a cumulative ACK of {len(frame.body.message_id)} ids"


@rule(
    "cumulative-goes-back",
    "A cumulative ACK names no message before the last one.",
    "Pulsar's ManagedCursor: the mark-delete position only rises",
    "Remember the last cumulative acknowledgement; earlier messages are acknowledged with it.",
    on=["ACK"],
    severity=Severity.WARNING,
)
def _back(state: State, frame: Frame) -> Iterator[str]:
    consumer = state.consumer(frame)
    if not _is_cumulative(frame) or consumer is None or consumer.shared:
        return
    for message_id in frame.body.message_id:
        position = position_of(message_id)
        if position < consumer.cumulative:
            yield f"{position[0]}:{position[1]} after {consumer.cumulative[0]}:{consumer.cumulative[1]}"
