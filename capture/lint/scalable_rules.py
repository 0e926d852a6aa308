"""Rules of clients of scalable topics, by the requirements C1 to C14 of Pulsar's specification (PIP-460, PIP-494).

`feature-not-offered` is the rule for C15.
"""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.rule import Section, Severity
from pulsarium.capture.lint.scalable import RegisteredGroup, Scalable, hash_of, keys_of, owner_of, schema_of, segment_of
from pulsarium.capture.lint.state import LintedConnection
from pulsarium.proto.generated.PulsarApi_pb2 import STICKY, CommandAck, CommandSubscribe
from pulsarium.proto.text import text_of

_NOTICED_NS = 1_000_000_000
"""Time after which a client should know the broker's last layout or assignment."""

_SUBSCRIPTIONS = CommandSubscribe

SCALABLE_RULES = Section("Rules of clients of scalable topics: layouts, routing, assignments")


def _of(requirement: str, where: str) -> str:
    return f"Specification of scalable topics: conformance {requirement}, {where}"


def _shared(state: LintedConnection) -> Scalable | None:
    """Return the state of scalable topics, or None when that state may be incomplete."""
    return state.shared.scalable if state.shared is not None and state.shared.whole else None


@SCALABLE_RULES(
    "segment-without-layout",
    "A client uses a segment of a layout or an assignment that a broker told.",
    _of("C1", "client behavior 1"),
    "Open a lookup session with SCALABLE_TOPIC_LOOKUP, and keep it for layout changes.",
    on=["PRODUCER", "SUBSCRIBE"],
)
def _without_layout(state: LintedConnection, frame: Frame) -> Iterator[str]:
    shared, topic = _shared(state), segment_of(frame.topic)
    if shared is None or topic is None:
        return
    group = shared.groups.get((topic.parent, text_of(frame.body.subscription))) if frame.name == "SUBSCRIBE" else None
    if shared.layouts.get(topic.parent) is None and (group is None or not group.assigned):
        yield f"{frame.name} for {frame.topic}, of whose topic no broker told a layout"


@SCALABLE_RULES(
    "key-in-wrong-segment",
    "A keyed message goes to the active segment whose range has the hash of its key.",
    _of("C2", "wire protocol 5"),
    "Route by the high 16 bits of the unmasked Murmur3 hash of the key. Pulsar 5.0.0-M1 takes the low 16 bits.",
    on=["SEND"],
)
def _wrong_segment(state: LintedConnection, frame: Frame) -> Iterator[str]:
    topic = segment_of(frame.topic)
    if topic is None:
        return
    for key in keys_of(state.sent(frame)):
        found = hash_of(key, state.conversation.broker_version)
        if not topic.start <= found <= topic.end:
            yield f"key {key.decode(errors='replace')!r} with hash {found:04x} in {frame.topic}"
            return


@SCALABLE_RULES(
    "key-overtakes",
    "A message goes to a successor segment after the parent segment has answered or closed the key's earlier messages.",
    _of("C3", "client behavior 3"),
    "Wait for the receipts of the sealed segment, or send its open messages again, before later ones of the key.",
    on=["SEND"],
)
def _overtakes(state: LintedConnection, frame: Frame) -> Iterator[str]:
    topic, producer = segment_of(frame.topic), state.producer(frame)
    owner = owner_of(producer.name, topic.id) if topic is not None and producer is not None else None
    if topic is None or owner is None:
        return
    for key in keys_of(state.sent(frame)):
        for other in state.scalable.overtaken(topic.parent, owner, key, topic.id):
            yield f"key {key.decode(errors='replace')!r} in segment {topic.id} before its receipt of segment {other}"
            return


@SCALABLE_RULES(
    "producer-on-sealed-segment",
    "A client produces to active segments.",
    _of("C4", "client behavior 4"),
    "Drop the producer of a sealed segment, and route its messages to the active successors.",
    on=["PRODUCER"],
)
def _on_sealed(state: LintedConnection, frame: Frame) -> Iterator[str]:
    shared, topic = _shared(state), segment_of(frame.topic)
    layout = None if shared is None or topic is None else shared.layouts.get(topic.parent)
    if layout is None or topic is None or frame.record.monotonic_ns - layout.told_ns < _NOTICED_NS:
        return
    segment = layout.segments.get(topic.id)
    if segment is None or not segment.active:
        yield f"PRODUCER for {frame.topic}, which is not active in epoch {layout.epoch}"


@SCALABLE_RULES(
    "segment-producer-name",
    "The producer of a segment has the name of the application's producer with -seg- and the segment's id.",
    _of("C5", "wire protocol 5"),
    "Name the producer <name>-seg-<id>: deduplication counts sequence ids by this name.",
    on=["PRODUCER"],
    severity=Severity.WARNING,
)
def _producer_name(state: LintedConnection, frame: Frame) -> Iterator[str]:
    topic, name = segment_of(frame.topic), text_of(frame.body.producer_name)
    if topic is not None and owner_of(name, topic.id) is None:
        yield f"producer {name!r} of segment {topic.id}"


@SCALABLE_RULES(
    "exclusive-attach-incomplete",
    "A producer with exclusive access attaches to every active segment before its first message.",
    _of("C6", "client behavior 2"),
    "Open a producer for each active segment when the application creates its producer.",
    on=["SEND"],
)
def _exclusive(state: LintedConnection, frame: Frame) -> Iterator[str]:
    shared, topic, producer = _shared(state), segment_of(frame.topic), state.producer(frame)
    if shared is None or topic is None or producer is None:
        return
    owner, layout = owner_of(producer.name, topic.id), shared.layouts.get(topic.parent)
    writer = None if owner is None else shared.writers.get((topic.parent, owner))
    if writer is None or layout is None or not writer.exclusive:
        return
    missing = sorted({number for number, each in layout.segments.items() if each.active} - writer.attached)
    if missing and frame.record.monotonic_ns - layout.told_ns >= _NOTICED_NS:
        yield f"SEND of {producer.name!r}, which has no producer on the active segments {missing}"


@SCALABLE_RULES(
    "segment-not-assigned",
    "A registered consumer subscribes to its assigned segments only.",
    _of("C7", "client behavior 8"),
    "Attach to exactly the segments of the last assignment, and detach from the others.",
    on=["SUBSCRIBE"],
)
def _not_assigned(state: LintedConnection, frame: Frame) -> Iterator[str]:
    shared, topic = _shared(state), segment_of(frame.topic)
    group = _group(shared, frame)
    if group is None or topic is None or not group.assigned:
        return
    if group.buckets(frame.topic or "") is None and frame.record.monotonic_ns - group.given_ns >= _NOTICED_NS:
        yield f"SUBSCRIBE to segment {topic.id}, which no consumer of the subscription was assigned"


@SCALABLE_RULES(
    "stream-attach-mode",
    "A stream consumer subscribes Exclusive, or Key_Shared with sticky entry buckets where a segment is shared.",
    _of("C7", "wire protocol 6.2"),
    "Subscribe Exclusive for empty bucket_ranges. Else set Key_Shared, STICKY, these ranges and entryBucketDispatch.",
    on=["SUBSCRIBE"],
)
def _attach_mode(state: LintedConnection, frame: Frame) -> Iterator[str]:
    group = _group(_shared(state), frame)
    buckets = None if group is None or group.checkpoint else group.buckets(frame.topic or "")
    if group is None or buckets is None or frame.record.monotonic_ns - group.given_ns < _NOTICED_NS:
        return
    body = frame.body
    meta = body.keySharedMeta
    sticky = meta.entryBucketDispatch and meta.keySharedMode == STICKY and len(meta.hashRanges) == buckets
    kind = _SUBSCRIPTIONS.SubType.Name(body.subType)
    if (kind == "Key_Shared" and sticky) if buckets else kind == "Exclusive":
        return
    yield f"{kind} on a segment with {buckets} bucket ranges"


@SCALABLE_RULES(
    "stream-individual-ack",
    "The only owner of a segment acknowledges cumulatively in a stream subscription.",
    _of("C7", "client behavior 6"),
    "Acknowledge each segment up to its position in the message's position vector.",
    on=["ACK"],
    severity=Severity.WARNING,
)
def _individual(state: LintedConnection, frame: Frame) -> Iterator[str]:
    consumer, shared = state.consumer(frame), _shared(state)
    topic = segment_of(consumer.topic) if consumer is not None else None
    if consumer is None or topic is None or shared is None or consumer.type != _SUBSCRIPTIONS.Exclusive:
        return
    group = shared.groups.get((topic.parent, consumer.subscription))
    if group is not None and not group.checkpoint and frame.body.ack_type == CommandAck.Individual:
        yield f"an individual acknowledgement on segment {topic.id}"


@SCALABLE_RULES(
    "queue-misses-segments",
    "A queue consumer subscribes to every active and sealed segment.",
    _of("C8", "client behavior 5"),
    "Subscribe Shared to all segments of the layout, and to new ones as they come.",
    on=["ACK"],
)
def _misses(state: LintedConnection, frame: Frame) -> Iterator[str]:
    consumer, shared = state.consumer(frame), _shared(state)
    topic = segment_of(consumer.topic) if consumer is not None else None
    if consumer is None or topic is None or shared is None or consumer.type != _SUBSCRIPTIONS.Shared:
        return
    layout = shared.layouts.get(topic.parent)
    readers = shared.readers.get((topic.parent, consumer.subscription))
    if layout is None or readers is None or frame.record.monotonic_ns - layout.told_ns < _NOTICED_NS:
        return
    missing = sorted(layout.segments.keys() - readers)
    if missing:
        yield f"subscription {consumer.subscription!r} is not on the segments {missing}"


@SCALABLE_RULES(
    "checkpoint-with-cursor",
    "A checkpoint consumer reads with a cursor that is not durable.",
    _of("C9", "client API 4.3"),
    "Subscribe with durable=false and a start_message_id from the checkpoint.",
    on=["SUBSCRIBE"],
)
def _with_cursor(state: LintedConnection, frame: Frame) -> Iterator[str]:
    group = _group(_shared(state), frame)
    if group is not None and group.checkpoint and frame.body.durable:
        yield f"a durable subscription of the checkpoint group {text_of(frame.body.subscription)!r}"


@SCALABLE_RULES(
    "position-of-other-segment",
    "A position of a segment is a position in a ledger of this segment.",
    _of("C10", "data model 4"),
    "Keep the segment's id in message ids and checkpoints.",
    on=["SUBSCRIBE", "SEEK"],
)
def _elsewhere(state: LintedConnection, frame: Frame) -> Iterator[str]:
    shared = _shared(state)
    name = "start_message_id" if frame.name == "SUBSCRIBE" else "message_id"
    if shared is None or segment_of(frame.topic) is None or not frame.body.HasField(name):
        return
    ledger = getattr(frame.body, name).ledgerId
    owner = shared.ledgers.get(ledger)
    if owner is not None and owner != frame.topic:
        yield f"{name} names ledger {ledger} of {owner}"


@SCALABLE_RULES(
    "segment-schemas-differ",
    "The producers of all segments have one schema.",
    _of("C11", "data model 6"),
    "Send the schema of the scalable topic with each segment's PRODUCER.",
    on=["PRODUCER"],
)
def _schemas(state: LintedConnection, frame: Frame) -> Iterator[str]:
    shared, topic = _shared(state), segment_of(frame.topic)
    writer = None if shared is None or topic is None else shared.writer(topic, text_of(frame.body.producer_name))
    schema = schema_of(frame)
    if writer is not None and None not in (writer.schema, schema) and writer.schema != schema:
        yield f"PRODUCER for {frame.topic} with another schema than on the topic's earlier segments"


@SCALABLE_RULES(
    "scalable-name-attached",
    "Producers and consumers attach to segments, and never to the scalable topic itself.",
    _of("C12", "wire protocol 3"),
    "Resolve the topic with SCALABLE_TOPIC_LOOKUP. The broker creates a missing topic there.",
    on=["PRODUCER", "SUBSCRIBE"],
)
def _attached(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if frame.topic is not None and frame.topic.startswith("topic://"):
        yield f"{frame.name} for {frame.topic}"


@SCALABLE_RULES(
    "refused-lookup-repeated",
    "A client does not repeat a lookup session that the broker refused for good.",
    _of("C13", "error model 3"),
    "Tell the application: TopicNotFound and authorization errors do not go away by themselves.",
    on=["SCALABLE_TOPIC_LOOKUP"],
)
def _repeated(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if state.scalable.refused.get(frame.body.session_id) == text_of(frame.body.topic):
        yield f"session {frame.body.session_id} for {text_of(frame.body.topic)}, which the broker had refused"


@SCALABLE_RULES(
    "session-id-in-use",
    "A client opens a lookup session with an id that no open session has.",
    _of("C14", "wire protocol 4"),
    "Close the session first, or take a new id: the broker keeps pushing the layouts of the old session.",
    on=["SCALABLE_TOPIC_LOOKUP"],
)
def _session(state: LintedConnection, frame: Frame) -> Iterator[str]:
    known = state.scalable.open.get(frame.body.session_id)
    if known is not None:
        yield f"session {frame.body.session_id}, which is open for {known}"


@SCALABLE_RULES(
    "registration-id-in-use",
    "A client registers each consumer under a consumer id of its own.",
    _of("C14", "wire protocol 6.2"),
    "Count consumer ids for each connection: the broker forgets the earlier registration of an id.",
    on=["SCALABLE_TOPIC_SUBSCRIBE"],
)
def _registration(state: LintedConnection, frame: Frame) -> Iterator[str]:
    body = frame.body
    known = state.scalable.registered.get(body.consumer_id)
    if known is not None and known != (text_of(body.topic), text_of(body.subscription), text_of(body.consumer_name)):
        yield f"consumer {body.consumer_id}, which is {known[2]!r} of {known[1]!r}"


def _group(shared: Scalable | None, frame: Frame) -> RegisteredGroup | None:
    """Return the registrations of a SUBSCRIBE's subscription, or None."""
    topic = segment_of(frame.topic)
    if shared is None or topic is None:
        return None
    return shared.groups.get((topic.parent, text_of(frame.body.subscription)))
