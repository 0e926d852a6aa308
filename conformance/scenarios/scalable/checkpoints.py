"""Scenarios of checkpoint consumers."""

from __future__ import annotations

from pulsarium.conformance.scenario import Stage, keyed, scenario, values_of


@scenario(
    "C9", "An ungrouped consumer reads the whole topic from its start position.", "client API 4.3", bug="reverses"
)
def checkpoint_reads_every_segment(stage: Stage) -> None:
    topic = stage.scalable_topic(3)
    stage.send(stage.producer(topic), keyed(0, 30))
    stage.in_order(stage.receive_all(stage.checkpoint_consumer(topic), values_of(keyed(0, 30))))


@scenario(
    "C9",
    "Restoring from a checkpoint resumes from exactly that position, in all segments.",
    "client API 4.3",
    bug="raw partial-checkpoint",
)
def checkpoint_round_trip(stage: Stage) -> None:
    topic = stage.scalable_topic(4)
    producer = stage.producer(topic)
    stage.send(producer, keyed(0, 20, keys=20))
    reader = stage.checkpoint_consumer(topic)
    got = stage.receive(reader, 9)
    saved = stage.ask("checkpoint", consumer=reader)["checkpoint"]
    stage.close(reader)
    stage.send(producer, keyed(20, 5))
    rest = sorted({*values_of(keyed(0, 20, keys=20)), *values_of(keyed(20, 5))} - {each["value"] for each in got})
    stage.receive_all(stage.checkpoint_consumer(topic, saved), rest)


@scenario(
    "C9",
    "A checkpoint can be restored after the layout has changed.",
    "client API 4.3",
    bug='sets checkpoint-consumer.start "earliest"',
)
def checkpoint_across_a_split(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    producer = stage.producer(topic)
    stage.send(producer, keyed(0, 10))
    reader = stage.checkpoint_consumer(topic)
    got = stage.receive(reader, 6)
    saved = stage.ask("checkpoint", consumer=reader)["checkpoint"]
    stage.close(reader)
    stage.side.split(topic, 0)
    stage.send(producer, keyed(10, 10))
    rest = sorted(set(values_of(keyed(0, 20))) - {each["value"] for each in got})
    stage.receive_all(stage.checkpoint_consumer(topic, saved), rest)


@scenario(
    "C10",
    "A checkpoint is opaque and restorable in another client.",
    "data model 5",
    bug='says checkpoint.checkpoint "earliest"',
)
def checkpoint_moves_to_another_client(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    stage.send(stage.producer(topic), keyed(0, 10))
    reader = stage.checkpoint_consumer(topic)
    got = stage.receive(reader, 4)
    saved = stage.ask("checkpoint", consumer=reader)["checkpoint"]
    stage.close(reader)
    stage.close(stage.client)
    stage.client = stage.connect()
    rest = sorted(set(values_of(keyed(0, 10))) - {each["value"] for each in got})
    stage.receive_all(stage.checkpoint_consumer(topic, saved), rest)


@scenario(
    "C9",
    "The start position latest delivers only later messages.",
    "client API 4.3",
    bug='sets checkpoint-consumer.start "earliest"',
)
def checkpoint_from_latest(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    producer = stage.producer(topic)
    stage.send(producer, keyed(0, 10))
    reader = stage.checkpoint_consumer(topic, "latest")
    stage.send(producer, keyed(10, 10))
    stage.receive_all(reader, values_of(keyed(10, 10)))


@scenario(
    "C9",
    "There is no broker-managed cursor: reading acknowledges nothing durably.",
    "client API 4.3",
    bug="raw durable-reader",
)
def checkpoint_leaves_no_cursor(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    stage.send(stage.producer(topic), keyed(0, 10))
    stage.receive_all(stage.checkpoint_consumer(topic), values_of(keyed(0, 10)))
    durable = [each for each in stage.history().attached if each.durable]
    stage.that(not durable, f"{len(durable)} durable subscriptions of a checkpoint consumer")


@scenario("C9", "A checkpoint consumer follows a split while it reads.", "wire protocol 6.3", bug="unsends-second")
def checkpoint_follows_a_split(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    producer, reader = stage.producer(topic), stage.checkpoint_consumer(topic)
    stage.send(producer, keyed(0, 10))
    stage.side.split(topic, 0)
    stage.send(producer, keyed(10, 10))
    stage.receive_all(reader, values_of(keyed(0, 20)))


@scenario(
    "C9",
    "Consumers of a group share the topic: each message is read by one member.",
    "client API 4.3",
    bug="without checkpoint-consumer.group",
)
def checkpoint_group_shares_segments(stage: Stage) -> None:
    topic = stage.scalable_topic(4)
    members = [stage.checkpoint_consumer(topic, group="g", name=name) for name in ("c1", "c2")]
    stage.send(stage.producer(topic), keyed(0, 40, keys=20))
    got = [[each["value"] for each in stage.receive(member, 40, 5)] for member in members]
    stage.that(all(got), "a member of the group received nothing, and half of the segments are its")
    stage.equal(sorted(got[0] + got[1]), sorted(values_of(keyed(0, 40, keys=20))), "values of the group")
