"""Rules of producers: SEND, receipts, what an entry says of itself."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.proto.commands import Direction
from pulsarium.proto.entry import checksum_matches, parse_metadata, strip_broker_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand
from pulsarium.proto.lint.frames import Frame
from pulsarium.proto.lint.rule import rule
from pulsarium.proto.lint.state import Phase, State

_T = BaseCommand
_CARRY_ENTRIES = {_T.SEND, _T.MESSAGE}
_SENT_TO = {"SEND", "CLOSE_PRODUCER"}


@rule(
    "producer-id-in-use",
    "A producer_id names one producer of a connection at a time",
    "PulsarApi.proto: CommandProducer",
)
def _in_use(state: State, frame: Frame) -> Iterator[str]:
    producer = state.producers.get(frame.producer_id or 0)
    if frame.name == "PRODUCER" and producer is not None and producer.phase is Phase.OPEN:
        yield f"producer {frame.producer_id} stands already, on {producer.topic}"


@rule("unknown-producer", "SEND and CLOSE_PRODUCER name a producer of their connection", "Binary protocol: producer")
def _unknown(state: State, frame: Frame) -> Iterator[str]:
    if frame.name in _SENT_TO and frame.sender is Direction.CLIENT:
        producer = state.producers.get(frame.producer_id or 0)
        if producer is None:
            yield f"{frame.name} for producer {frame.producer_id}, which nobody opened"
        elif producer.phase is Phase.CLOSED_BY_CLIENT:
            yield f"{frame.name} for producer {frame.producer_id}, which its client had closed"


@rule("send-before-ready", "A producer sends once PRODUCER_SUCCESS says producer_ready", "PIP-68")
def _ready(state: State, frame: Frame) -> Iterator[str]:
    producer = state.producers.get(frame.producer_id or 0)
    if frame.name == "SEND" and producer is not None and producer.phase is Phase.OPENING:
        yield f"SEND for producer {frame.producer_id}, which is not ready"


@rule("sequence-goes-back", "The sequence ids of a producer rise, unless its application names it", "PIP-6")
def _sequence(state: State, frame: Frame) -> Iterator[str]:
    producer = state.producers.get(frame.producer_id or 0)
    if frame.name != "SEND" or producer is None or producer.named_by_application:
        return  # an application that has a name for its producer may replay what it sent: deduplication is for that
    if (frame.sequence_id or 0) < producer.last_sequence:  # equal: a message's chunks share one
        yield f"sequence {frame.sequence_id} after {producer.last_sequence}"


@rule("receipt-of-nothing", "SEND_RECEIPT and SEND_ERROR name a SEND that waits for one", "Binary protocol: producer")
def _receipt(state: State, frame: Frame) -> Iterator[str]:
    producer = state.producers.get(frame.producer_id or 0)
    # What was under way when the broker closed the producer may be answered afterwards, also when it is opened again.
    closing = producer is not None and producer.phase in (Phase.OPENING, Phase.CLOSED_BY_BROKER)
    if frame.name in ("SEND_RECEIPT", "SEND_ERROR") and state.matcher.request_of(frame) is None and not closing:
        yield f"{frame.name} for sequence {frame.sequence_id} of producer {frame.producer_id}, which waits for none"


@rule("receipts-out-of-order", "The receipts of a producer come in the order of its SENDs", "Binary protocol: producer")
def _order(state: State, frame: Frame) -> Iterator[str]:
    request = state.matcher.request_of(frame) if frame.name == "SEND_RECEIPT" else None
    if request is not None:
        oldest = state.matcher.oldest_send(frame.producer_id) or request
        if oldest.number < request.number and (oldest.sequence_id or 0) < (request.sequence_id or 0):
            yield f"the receipt of sequence {frame.sequence_id} before that of {oldest.sequence_id}"


@rule("checksum-wrong", "An entry fits its CRC32C", "Binary protocol: payload commands")
def _checksum(state: State, frame: Frame) -> Iterator[str]:
    if frame.spec is None or frame.spec.type not in _CARRY_ENTRIES or not frame.whole:
        return
    try:
        entry = frame.entry if frame.name == "SEND" else strip_broker_metadata(frame.entry)
        if checksum_matches(entry) is False:
            yield f"the entry of {frame.name} does not fit its checksum"
    except EntryError:
        return  # that is for the next rule


@rule("entry-unreadable", "An entry begins with its metadata", "Binary protocol: payload commands")
def _entry(state: State, frame: Frame) -> Iterator[str]:
    if frame.spec and frame.spec.type in _CARRY_ENTRIES and frame.whole:
        try:
            parse_metadata(frame.entry)
        except EntryError as error:
            yield str(error)


@rule(
    "num-messages-mismatch",
    "num_messages of SEND is num_messages_in_batch of its entry",
    "PulsarApi.proto: CommandSend",
)
def _count(state: State, frame: Frame) -> Iterator[str]:
    if frame.name != "SEND":
        return
    try:
        inside = parse_metadata(frame.entry).num_messages_in_batch
    except EntryError:
        return
    if frame.body.num_messages != inside:
        yield f"num_messages {frame.body.num_messages}, and the entry has {inside}"
