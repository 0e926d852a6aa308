"""Rules of producers at work: SEND, its ids, and receipts."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.members import Phase
from pulsarium.capture.lint.rule import Severity, rule
from pulsarium.capture.lint.state import State
from pulsarium.proto.commands import Direction

_PRODUCER = "Binary protocol: producer"
NOTICED_NS = 1_000_000_000
"""After so long a client should have heard what the broker said."""


@rule(
    "unknown-producer",
    "SEND names a producer of its connection.",
    _PRODUCER,
    "Keep producer ids by connection: the broker closes a connection for others.",
    on=["SEND"],
)
def _unknown(state: State, frame: Frame) -> Iterator[str]:
    producer = state.producer(frame)
    if producer is None and state.producers.whole:
        yield f"{frame.name} for producer {frame.producer_id}, which nobody opened"
    elif producer is not None and producer.phase is Phase.CLOSED_BY_CLIENT:
        yield f"{frame.name} for producer {frame.producer_id}, which its client had closed"


@rule(
    "send-before-ready",
    "A producer sends once PRODUCER_SUCCESS says producer_ready.",
    "PIP-68",
    "Wait for PRODUCER_SUCCESS with producer_ready: WaitForExclusive may take for ever.",
    on=["SEND"],
)
def _ready(state: State, frame: Frame) -> Iterator[str]:
    producer = state.producer(frame)
    if producer is not None and producer.phase is Phase.OPENING:
        yield f"SEND for producer {frame.producer_id}, which is not ready"


@rule(
    "send-after-close",
    "Nothing is sent behind a producer's CLOSE_PRODUCER.",
    _PRODUCER,
    "Flush first, then close.",
    on=["SEND"],
)
def _after_close(state: State, frame: Frame) -> Iterator[str]:
    producer = state.producer(frame)
    if producer is not None and producer.closing and producer.phase is not Phase.CLOSED_BY_CLIENT:
        yield f"SEND of sequence {frame.sequence_id} behind CLOSE_PRODUCER of producer {frame.producer_id}"


@rule(
    "producer-close-ignored",
    "A producer that its broker closed is opened again before it sends.",
    "Binary protocol: CLOSE_PRODUCER from a broker",
    "React to CLOSE_PRODUCER: look the topic up and open the producer again; what is sent meanwhile is dropped.",
    on=["SEND"],
)
def _close_ignored(state: State, frame: Frame) -> Iterator[str]:
    producer = state.producer(frame)
    if producer is None or producer.phase is not Phase.CLOSED_BY_BROKER:
        return
    since = frame.record.monotonic_ns - producer.closed_ns
    if since >= NOTICED_NS:
        yield f"SEND for producer {frame.producer_id}, which its broker closed {since / 1e9:.1f} s ago"


@rule(
    "closed-twice",
    "A producer or consumer is ended once, by the connection that it is on.",
    "PulsarApi.proto: CommandCloseProducer, CommandCloseConsumer, CommandUnsubscribe",
    "Forget a producer or consumer when it is closed: brokers answer SUCCESS whether there is one or not.",
    on=["CLOSE_PRODUCER", "CLOSE_CONSUMER", "UNSUBSCRIBE"],
    severity=Severity.WARNING,
)
def _twice(state: State, frame: Frame) -> Iterator[str]:
    if frame.sender is not Direction.CLIENT:
        return
    if frame.name == "CLOSE_PRODUCER":
        producer = state.producer(frame)
        never, ended = producer is None and state.producers.whole, producer is not None and producer.closing
    else:
        consumer = state.consumer(frame)
        never, ended = (
            consumer is None and state.consumers.whole,
            consumer is not None and consumer.ending == frame.name,
        )
        if frame.name == "UNSUBSCRIBE" and (consumer is None or consumer.phase is Phase.CLOSED_BY_CLIENT):
            return  # that is refused, and for unknown-consumer
    if never or ended:
        yield f"{frame.name} once more" if ended else f"{frame.name} of what nobody opened"


@rule(
    "sequence-goes-back",
    "The sequence ids of a producer rise, unless its application names it.",
    "PIP-6",
    "Number messages in the order in which they are sent; after an error send all of them again from there on.",
    on=["SEND"],
)
def _sequence(state: State, frame: Frame) -> Iterator[str]:
    producer = state.producer(frame)
    if producer is None or producer.named_by_application:
        return  # an application that has a name for its producer may replay what it sent: deduplication is for that
    if (frame.sequence_id or 0) < producer.last_sequence:  # equal: a message's chunks share one
        yield f"sequence {frame.sequence_id} after {producer.last_sequence}"


@rule(
    "highest-sequence-low",
    "highest_sequence_id is that of the last message of a batch, never below sequence_id.",
    "PulsarApi.proto: CommandSend.highest_sequence_id",
    "Set it for batches, to the last message's, or leave it out: brokers ignore a lower one.",
    on=["SEND"],
)
def _highest(state: State, frame: Frame) -> Iterator[str]:
    body = frame.body
    # 0 is what some clients write for none.
    if body.HasField("highest_sequence_id") and 0 < body.highest_sequence_id < body.sequence_id:
        yield f"highest_sequence_id {body.highest_sequence_id} of sequence {body.sequence_id}"


@rule(
    "receipt-of-nothing",
    "SEND_RECEIPT and SEND_ERROR name a SEND that waits for one.",
    _PRODUCER,
    "Answer with the ids of the SEND.",
    on=["SEND_RECEIPT", "SEND_ERROR"],
    about=Direction.BROKER,
)
def _receipt(state: State, frame: Frame) -> Iterator[str]:
    producer = state.producer(frame)
    # What was under way when the broker closed the producer may be answered afterwards, also when it is opened again.
    closing = producer is not None and producer.phase in (Phase.OPENING, Phase.CLOSED_BY_BROKER)
    if state.matcher.request_of(frame) is None and not closing:
        yield f"{frame.name} for sequence {frame.sequence_id} of producer {frame.producer_id}, which waits for none"


@rule(
    "receipts-out-of-order",
    "The receipts of a producer come in the order of its SENDs.",
    _PRODUCER,
    "Answer in order.",
    on=["SEND_RECEIPT"],
    about=Direction.BROKER,
)
def _order(state: State, frame: Frame) -> Iterator[str]:
    request = state.matcher.request_of(frame)
    if request is not None:
        oldest = state.matcher.oldest_send(frame.producer_id) or request
        if oldest.number < request.number and (oldest.sequence_id or 0) < (request.sequence_id or 0):
            yield f"the receipt of sequence {frame.sequence_id} before that of {oldest.sequence_id}"
