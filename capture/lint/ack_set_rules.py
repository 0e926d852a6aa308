"""Rules of ack sets: acknowledgement of single messages of a batch (PIP-54)."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.ranges import Position
from pulsarium.capture.lint.rule import Severity, rule
from pulsarium.capture.lint.shared import Subscription, full, position_of
from pulsarium.capture.lint.state import State
from pulsarium.proto.generated.PulsarApi_pb2 import CommandAck
from pulsarium.proto.message_id import bits_of

_PIP = "PIP-54"


def _ack_sets(state: State, frame: Frame) -> Iterator[tuple[Subscription, Position, int, int]]:
    """Each ack set: the subscription, the batch, how many messages it has (0: it is none), the bits."""
    consumer = state.consumer(frame)
    if consumer is None or state.shared is None or not state.shared.whole:
        return
    subscription = state.shared.of(consumer.topic, consumer.subscription)
    for message_id in frame.body.message_id:
        if message_id.ack_set:
            position = position_of(message_id)
            size = subscription.batch_size(position)
            if size is not None:
                yield subscription, position, size, bits_of(message_id.ack_set)


@rule(
    "ack-set-of-no-batch",
    "Only the ack of a batch has an ack set.",
    _PIP,
    "Leave ack_set out for a message alone: the broker would keep it as a message half acknowledged.",
    on=["ACK"],
)
def _no_batch(state: State, frame: Frame) -> Iterator[str]:
    for _, position, size, _ in _ack_sets(state, frame):
        if not size:
            yield f"an ack set for {position[0]}:{position[1]}, which is no batch"


@rule(
    "ack-set-too-long",
    "An ack set has a bit for each message of its batch, and no more.",
    _PIP,
    "Make the set as long as num_messages_in_batch, not as long as its words.",
    on=["ACK"],
)
def _too_long(state: State, frame: Frame) -> Iterator[str]:
    for _, position, size, bits in _ack_sets(state, frame):
        if size and bits >> size:
            yield f"bit {bits.bit_length() - 1} for {position[0]}:{position[1]}, a batch of {size}"


@rule(
    "ack-set-polarity",
    "A bit of an ack set that is 1 is a message that is not acknowledged yet.",
    _PIP,
    "Begin with ones and clear the bit of each message that is acknowledged.",
    on=["ACK"],
)
def _polarity(state: State, frame: Frame) -> Iterator[str]:
    if frame.body.ack_type == CommandAck.Cumulative:
        return
    for subscription, position, size, bits in _ack_sets(state, frame):
        if not size or bits >> size:
            continue
        cleared = full(size) & ~bits
        done = subscription.cleared(position) == full(size) and position not in subscription.again
        if not cleared:
            yield f"all {size} bits of {position[0]}:{position[1]} are 1, which acknowledges nothing"
        elif done and cleared.bit_count() > 1:
            yield f"{position[0]}:{position[1]} was acknowledged whole by the ack sets before"


@rule(
    "ack-set-repeated",
    "An ack set acknowledges a message that was not acknowledged before.",
    _PIP,
    "Forget a message with its acknowledgement.",
    on=["ACK"],
    severity=Severity.WARNING,
)
def _repeated(state: State, frame: Frame) -> Iterator[str]:
    if frame.body.ack_type == CommandAck.Cumulative:
        return
    for subscription, position, size, bits in _ack_sets(state, frame):
        cleared = full(size) & ~bits
        done = subscription.cleared(position)
        wrong_way = done == full(size) and cleared.bit_count() > 1  # that is for ack-set-polarity
        if cleared and not cleared & ~done and not wrong_way and position not in subscription.again:
            yield f"nothing new of {position[0]}:{position[1]}"
