"""Scenarios of stream consumers: assignments, order, cumulative acknowledgement, leaving."""

from __future__ import annotations

from pulsarium.conformance.scenario import SECONDS, Stage, keyed, scenario, values_of

LEAVING = (
    "Leaving: wire-protocol.md section 6.2 demands SCALABLE_TOPIC_UNSUBSCRIBE at the close of a stream consumer. "
    "Pulsar 5.0 has the command, and 5.0.0-M1 does not know it: --profile."
)


@scenario(
    "C7",
    "A stream consumer registers with the controller, and attaches to its assigned segments.",
    "client behavior 8",
    bug="instead stream queue",
)
def stream_attaches_to_assigned_segments(stage: Stage) -> None:
    topic = stage.scalable_topic(3)
    consumer = stage.stream(topic)
    stage.send(stage.producer(topic), keyed(0, 30))
    stage.in_order(stage.receive_all(consumer, values_of(keyed(0, 30))))
    history = stage.history()
    stage.equal(len(history.of("SCALABLE_TOPIC_SUBSCRIBE")), 1, "registrations")
    kinds = {(each.segment.id, each.kind) for each in history.attached}
    stage.equal(kinds, {(number, "Exclusive") for number in range(3)}, "subscriptions of the stream consumer")


@scenario(
    "C7",
    "A cumulative ack advances all segments, up to the positions of the message's vector.",
    "client behavior 6",
    bug="raw acks-one-segment",
)
def cumulative_ack_across_segments(stage: Stage) -> None:
    topic = stage.scalable_topic(4)
    consumer = stage.stream(topic)
    stage.send(stage.producer(topic), keyed(0, 40, keys=20))
    got = stage.receive_all(consumer, values_of(keyed(0, 40, keys=20)))
    stage.acknowledge(consumer, got[-1])
    # A client may send grouped acknowledgements a moment after the call, and lose them at its close.
    stage.until(lambda: len(stage.history().acked) >= 4, "not every segment got an acknowledgement")
    stage.close(consumer)
    stage.nothing(stage.stream(topic))


@scenario(
    "C7",
    "A cumulative ack covers what was delivered before the message, and nothing after it.",
    "client behavior 6",
    bug="raw acks-too-much",
)
def cumulative_ack_in_the_middle(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    consumer = stage.stream(topic)
    stage.send_each(stage.producer(topic), keyed(0, 20))
    got = stage.receive_all(consumer, values_of(keyed(0, 20)))
    stage.acknowledge(consumer, got[9])
    stage.close(consumer)
    stage.receive_all(stage.stream(topic), [each["value"] for each in got[10:]])


@scenario(
    "C7",
    "A vector spans sealed and new segments: one ack after a split covers both.",
    "client behavior 6",
    bug="ignores acknowledge",
)
def cumulative_ack_across_a_split(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    consumer, producer = stage.stream(topic), stage.producer(topic)
    stage.send(producer, keyed(0, 8))
    first = stage.receive_all(consumer, values_of(keyed(0, 8)))
    stage.acknowledge(consumer, first[-1])
    stage.side.split(topic, 0)
    stage.send(producer, keyed(8, 8))
    stage.drain_polls()
    second = stage.receive_all(consumer, values_of(keyed(8, 8)))
    stage.acknowledge(consumer, second[-1])
    stage.close(consumer)
    stage.nothing(stage.stream(topic))


@scenario("C7", "Messages are delivered in per-key order, across a split.", "client API 4.1", bug="reverses")
def stream_keeps_order_across_a_split(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    consumer, producer = stage.stream(topic), stage.producer(topic)
    stage.send(producer, keyed(0, 20))
    stage.side.split(topic, 0)
    stage.send(producer, keyed(20, 20))
    got = stage.receive_all(consumer, values_of(keyed(0, 20)))
    stage.acknowledge(consumer, got[-1])
    stage.drain_polls()
    stage.in_order([*got, *stage.receive_all(consumer, values_of(keyed(20, 20)))])


@scenario(
    "C7", "On reconnect the consumer resumes from the persisted cursor.", "client API 4.1", bug="ignores acknowledge"
)
def stream_resumes_from_its_cursor(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    producer = stage.producer(topic)
    stage.send(producer, keyed(0, 10))
    consumer = stage.stream(topic)
    got = stage.receive_all(consumer, values_of(keyed(0, 10)))
    stage.acknowledge(consumer, got[-1])
    stage.close(consumer)
    stage.send(producer, keyed(10, 10))
    stage.receive_all(stage.stream(topic), values_of(keyed(10, 10)))


@scenario(
    "C7",
    "Closing a consumer acknowledges nothing on the application's behalf.",
    "client behavior 6",
    bug="acknowledges",
)
def stream_close_acknowledges_nothing(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    stage.send(stage.producer(topic), keyed(0, 10))
    consumer = stage.stream(topic)
    stage.receive_all(consumer, values_of(keyed(0, 10)))
    stage.close(consumer)
    stage.receive_all(stage.stream(topic), values_of(keyed(0, 10)))


@scenario(
    "C7",
    "Several consumers of a subscription share the segments, and each key stays in order.",
    "client API 4.1",
    bug="reverses",
)
def stream_shares_segments(stage: Stage) -> None:
    topic = stage.scalable_topic(4)
    consumers = [stage.stream(topic, name="c1"), stage.stream(topic, name="c2")]
    stage.send(stage.producer(topic), keyed(0, 60, keys=30))
    got = [stage.receive(each, 60, 5) for each in consumers]
    for each in got:
        stage.that(each, "a consumer received nothing, and half of the segments are its")
        stage.in_order(each)
    values = [message["value"] for each in got for message in each]
    stage.equal(set(values), set(values_of(keyed(0, 60, keys=30))), "values that both consumers received")


@scenario(
    "C7",
    "Closing a consumer sends SCALABLE_TOPIC_UNSUBSCRIBE, so that the others take over at once.",
    "wire protocol 6.2",
    contradiction=LEAVING,
    bug="raw stays-registered",
)
def stream_leaves_cleanly(stage: Stage) -> None:
    if stage.spec == "5.0-m1":
        return  # the command came after M1
    topic = stage.scalable_topic(2)
    first, second = stage.stream(topic, name="c1"), stage.stream(topic, name="c2")
    stage.close(first)
    stage.equal(
        len(stage.history().of("SCALABLE_TOPIC_UNSUBSCRIBE")), 1, "SCALABLE_TOPIC_UNSUBSCRIBE of the closed consumer"
    )
    stage.send(stage.producer(topic), keyed(0, 20))
    stage.receive_all(second, values_of(keyed(0, 20)))


@scenario(
    "C7",
    "After the loss of the controller a consumer registers again, and keeps its segments.",
    "client behavior 8",
    bug="instead stream queue",
)
def controller_failover(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    consumer, producer = stage.stream(topic), stage.producer(topic)
    stage.send(producer, keyed(0, 10))
    got = stage.receive_all(consumer, values_of(keyed(0, 10)))
    stage.acknowledge(consumer, got[-1])
    stage.side.cut()
    stage.send(producer, keyed(10, 10))
    stage.receive_at_least(consumer, values_of(keyed(10, 10)), SECONDS)
    stage.that(len(stage.history().of("SCALABLE_TOPIC_SUBSCRIBE")) >= 2, "the consumer did not register again")


@scenario(
    "C7",
    "When consumers outnumber segments, the segment is shared by entry buckets or the surplus is idle.",
    "key-shared 4",
    bug="unsends-second",
)
def stream_outnumbers_segments(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    consumers = [stage.stream(topic, name="c1"), stage.stream(topic, name="c2")]
    stage.send(stage.producer(topic), keyed(0, 40, keys=20))
    got = [message for each in consumers for message in stage.receive(each, 40, 4)]
    stage.equal({each["value"] for each in got}, set(values_of(keyed(0, 40, keys=20))), "values of both consumers")


@scenario(
    "Namespace subscription",
    "A namespace consumer follows topics that come into the matching set.",
    "client API 4.4",
    bug="unsends-second",
)
def namespace_stream_follows_topics(stage: Stage) -> None:
    stage.scalable_topic(1, team="x")
    fields = {"client": stage.client, "namespace": stage.namespace, "properties": {"team": "x"}}
    consumer = stage.opened("namespace-stream", subscription="s", name="c1", **fields)
    later = stage.scalable_topic(1, team="x")
    stage.send(stage.producer(later), keyed(0, 5))
    stage.receive_all(consumer, values_of(keyed(0, 5)))
