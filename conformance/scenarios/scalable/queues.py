"""Scenarios of queue consumers."""

from __future__ import annotations

from pulsarium.conformance.scenario import Stage, keyed, scenario, values_of


@scenario("C8", "A queue consumer subscribes Shared to all active segments.", "client behavior 5", bug="repeats")
def queue_reads_every_segment(stage: Stage) -> None:
    topic = stage.scalable_topic(4)
    consumer = stage.queue(topic)
    stage.send(stage.producer(topic), keyed(0, 40))
    stage.receive_all(consumer, values_of(keyed(0, 40)), acknowledge=True)
    kinds = {(each.segment.id, each.kind) for each in stage.history().attached}
    stage.equal(kinds, {(number, "Shared") for number in range(4)}, "subscriptions of the queue consumer")


@scenario(
    "C8",
    "A queue consumer subscribes to sealed segments too, and reads what they hold.",
    "client behavior 5",
    bug="raw reads-active-only",
)
def queue_reads_sealed_segments(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    producer = stage.producer(topic)
    stage.send(producer, keyed(0, 10))
    stage.side.split(topic, 0)
    stage.send(producer, keyed(10, 10))
    stage.receive_all(stage.queue(topic), values_of(keyed(0, 20)), acknowledge=True)


@scenario(
    "C8", "As the layout changes, the consumer adds subscriptions for new segments.", "client behavior 5", bug="repeats"
)
def queue_follows_a_split(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    consumer, producer = stage.queue(topic), stage.producer(topic)
    stage.send(producer, keyed(0, 10))
    stage.side.split(topic, 0)
    stage.send(producer, keyed(10, 10))
    stage.receive_all(consumer, values_of(keyed(0, 20)), acknowledge=True)


@scenario(
    "C8",
    "Acknowledgment is individual: the other messages are delivered again.",
    "client API 4.2",
    bug="ignores acknowledge",
)
def queue_acknowledges_individually(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    consumer = stage.queue(topic)
    stage.send_each(stage.producer(topic), keyed(0, 10))
    got = stage.receive_all(consumer, values_of(keyed(0, 10)))
    for each in got[1::2]:
        stage.acknowledge(consumer, each)
    stage.close(consumer)
    stage.receive_all(stage.queue(topic), [each["value"] for each in got[0::2]], acknowledge=True)


@scenario(
    "C8",
    "Each acknowledgement goes to the segment in the message's id, also after a split.",
    "client behavior 5",
    bug="raw acks-across-split",
)
def queue_acknowledges_across_a_split(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    consumer, producer = stage.queue(topic), stage.producer(topic)
    stage.send(producer, keyed(0, 8))
    before = stage.receive_all(consumer, values_of(keyed(0, 8)))
    stage.side.split(topic, 0)
    stage.send(producer, keyed(8, 8))
    after = stage.receive_all(consumer, values_of(keyed(8, 8)))
    for each in (*after, *before):
        stage.acknowledge(consumer, each)
    stage.close(consumer)
    stage.nothing(stage.queue(topic))


@scenario(
    "C8",
    "Negative acknowledgment requests redelivery of a single message.",
    "client API 4.2",
    bug="ignores negative-acknowledge",
)
def queue_redelivers_one_message(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    consumer = stage.queue(topic)
    stage.send_each(stage.producer(topic), keyed(0, 6))
    got = stage.receive_all(consumer, values_of(keyed(0, 6)))
    stage.ask("negative-acknowledge", consumer=consumer, message=got[2]["id"])
    for each in got[:2] + got[3:]:
        stage.acknowledge(consumer, each)
    stage.side.advance(61)
    stage.receive_all(consumer, [got[2]["value"]], acknowledge=True)


@scenario("C8", "Messages are distributed across the subscription's consumers.", "client API 4.2", bug="repeats")
def queue_shares_messages(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    consumers = [stage.queue(topic), stage.queue(topic)]
    stage.send(stage.producer(topic), keyed(0, 100, keys=40))
    got: list[str] = []
    for _ in range(20):
        for each in consumers:
            some = stage.receive(each, 20, 0.3)
            got += [message["value"] for message in some]
            for message in some:
                stage.acknowledge(each, message)
        if len(got) >= 100:
            break
    stage.equal(sorted(got), sorted(values_of(keyed(0, 100, keys=40))), "values that both consumers received")
