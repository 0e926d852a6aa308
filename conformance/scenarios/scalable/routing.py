"""Scenarios of producer routing: the segment of each message."""

from __future__ import annotations

from pulsarium.conformance.scenario import Stage, scenario

KEYS = (
    *(
        "",
        "a",
        "key",
        "k0",
        "k1",
        "k2",
        "k3",
        "k4",
        "k5",
        "k6",
        "key0",
        "key1",
        "key2",
        "key3",
        "key10",
        "key42",
        "key59",
    ),
    *("hello world", "äöü", "你好", "order-12345", "00000000-0000-0000-0000-000000000000"),
)
"""The keys of the specification's routing vectors, and texts of several scripts."""
TWO_HASHES = (
    "Routing hash: wire-protocol.md section 5 and client-behavior.md section 2 take the high 16 bits of the unmasked "
    "Murmur3 hash; conformance.md C2 takes the low 16 bits. Pulsar 5.0 does the first, 5.0.0-M1 the second: --profile."
)


def _routed(stage: Stage, topic: str, keys: tuple[str, ...]) -> None:
    """Publish a message for each key, and fail unless each is in the segment of the hash."""
    stage.send(stage.producer(topic), [(key, f"v-{key}") for key in keys])
    stored = {each.key or "": each.segment for each in stage.history().stored}
    for key in keys:
        stage.that(key in stored, f"no segment stored the message of key {key!r}")
        segment, found = stored[key], stage.hash(key)
        stage.that(
            segment.start <= found <= segment.end,
            f"key {key!r} with hash {found:04x} went to segment {segment.id} ({segment.start:04x}-{segment.end:04x})",
        )


@scenario(
    "C2",
    "Keyed: select the single ACTIVE segment whose range contains the hash of the key.",
    "wire protocol 5",
    contradiction=TWO_HASHES,
    bug="raw misroute",
)
def routing_vectors_four_segments(stage: Stage) -> None:
    _routed(stage, stage.scalable_topic(4), KEYS[1:])


@scenario(
    "C2",
    "The active set tiles the ring: every hash has one segment, also where segments are not equally wide.",
    "client behavior 2",
    contradiction=TWO_HASHES,
    bug="unsends key",
)
def routing_vectors_three_segments(stage: Stage) -> None:
    _routed(stage, stage.scalable_topic(3), KEYS[1:])


@scenario(
    "C2",
    "Any client routes a given key to the same segment as any other, also at the edges of narrow segments.",
    "conformance 1",
    contradiction=TWO_HASHES,
    bug="raw low-bits",
)
def routing_vectors_sixteen_segments(stage: Stage) -> None:
    _routed(stage, stage.scalable_topic(16), tuple(f"order-{number}" for number in range(100)))


@scenario(
    "C2",
    "Select the segment among the ACTIVE ones: sealed segments have ranges that overlap their children's.",
    "client behavior 2",
    contradiction=TWO_HASHES,
    bug="unsends key",
)
def routing_vectors_after_split(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    stage.side.split(topic, 0)
    stage.side.split(topic, 1)
    _routed(stage, topic, KEYS[1:])


@scenario("C2", "Keyless: round-robin across the active segments.", "client behavior 2", bug="raw sticky-keyless")
def routing_keyless_round_robin(stage: Stage) -> None:
    producer = stage.producer(stage.scalable_topic(4))
    for number in range(12):
        stage.send(producer, [(None, f"m-{number}")])
    counts = [0] * 4
    for each in stage.history().stored:
        counts[each.segment.id] += 1
    stage.equal(counts, [3, 3, 3, 3], "messages without a key in each segment")


@scenario(
    "C2",
    "An underlying producer is created lazily, on the first send to its segment.",
    "client behavior 2",
    bug='sets producer.access "exclusive"',
)
def routing_lazy_producers(stage: Stage) -> None:
    producer = stage.producer(stage.scalable_topic(4))
    stage.that(not stage.history().producers, "the client opened producers of segments before the first message")
    stage.send(producer, [("key", "m-0")])
    opened = {segment.id for segment, _ in stage.history().producers}
    stage.equal(len(opened), 1, "segments with a producer after one keyed message")


@scenario(
    "C2",
    "A client maintains at most one underlying producer per active segment.",
    "client behavior 2",
    bug="ignores send",
)
def routing_one_producer_per_segment(stage: Stage) -> None:
    producer = stage.producer(stage.scalable_topic(2))
    for start in range(0, 60, 20):
        stage.send(producer, [(f"k{number}", f"m-{number}") for number in range(start, start + 20)])
    opened = sorted(segment.id for segment, _ in stage.history().producers)
    stage.equal(opened, [0, 1], "producers of segments")


@scenario(
    "C5",
    "The producer of a segment is named <producerName>-seg-<segment_id>.",
    "wire protocol 5",
    bug="without producer.name",
)
def routing_names_of_segment_producers(stage: Stage) -> None:
    stage.send(
        stage.producer(stage.scalable_topic(2), name="mine"), [(f"k{number}", f"m-{number}") for number in range(20)]
    )
    names = {(segment.id, name) for segment, name in stage.history().producers}
    stage.equal(names, {(0, "mine-seg-0"), (1, "mine-seg-1")}, "names of segment producers")
