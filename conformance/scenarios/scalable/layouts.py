"""Scenarios of layouts: lookup sessions, epochs, stale layouts and brokers that move."""

from __future__ import annotations

from pulsarium.conformance.scenario import SECONDS, Stage, keyed, scenario, values_of


@scenario(
    "C1",
    "A client opens a lookup session for each topic that it produces to.",
    "client behavior 1",
    bug="ignores producer",
)
def layout_of_producers_is_watched(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    stage.send(stage.producer(topic), keyed(0, 4))
    looked = [each.body.topic for each in stage.history().of("SCALABLE_TOPIC_LOOKUP")]
    stage.that(topic in looked, f"no lookup session for {topic}: {looked}")


@scenario(
    "C1",
    "A client opens a lookup session for each topic that a queue consumer reads.",
    "client behavior 1",
    bug="ignores queue",
)
def layout_of_queues_is_watched(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    stage.queue(topic)
    looked = [each.body.topic for each in stage.history().of("SCALABLE_TOPIC_LOOKUP")]
    stage.that(topic in looked, f"no lookup session for {topic}: {looked}")


@scenario(
    "C14",
    "A client does not open a second session under the id of a live session.",
    "wire protocol 4",
    bug="raw double-session",
)
def double_sessions(stage: Stage) -> None:
    topics = [stage.scalable_topic(1) for _ in range(3)]
    for each in topics:
        stage.send(stage.producer(each), keyed(0, 2))
    broken = [each for each in stage.history().findings if each.rule == "session-id-in-use"]
    stage.that(not broken, "a session id was used twice")


@scenario(
    "C14",
    "A client closes its lookup session with the last producer and consumer of the topic.",
    "client API 3.3",
    bug="ignores close",
)
def sessions_are_closed(stage: Stage) -> None:
    producer = stage.producer(stage.scalable_topic(1))
    stage.send(producer, keyed(0, 2))
    stage.close(producer)
    stage.close(stage.client)

    def closed() -> bool:
        history = stage.history()
        sessions = len(history.of("SCALABLE_TOPIC_LOOKUP")), len(history.of("SCALABLE_TOPIC_CLOSE"))
        return sessions[0] == sessions[1] or history.ended  # the end of a connection closes its sessions too

    stage.until(closed, "a lookup session of the closed producer stayed open")


@scenario(
    "C1",
    "A client applies a pushed layout: later messages go to the new segments only.",
    "client behavior 1",
    bug="raw ignores-layouts",
)
def stale_layouts_are_dropped(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    producer = stage.producer(topic)
    stage.send(producer, keyed(0, 4))
    stage.side.split(topic, 0)
    stage.side.merge(topic, 1, 2)
    stage.send(producer, keyed(4, 4))
    stage.equal({each.segment.id for each in stage.history().stored[4:]}, {3}, "segments after a split and a merge")


@scenario(
    "C1",
    "On connection loss the client looks up the topic again, and refreshes the layout.",
    "wire protocol 4",
    bug="unsends-second",
)
def layout_after_connection_loss(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    producer = stage.producer(topic)
    stage.send(producer, keyed(0, 4))
    stage.side.cut()
    stage.side.split(topic, 0)
    stage.send(producer, keyed(4, 4))
    later = [each for each in stage.history().stored if each.value in values_of(keyed(4, 4))]
    stage.equal(len(later), 4, "messages after the loss")
    stage.that({each.segment.id for each in later} <= {1, 2}, "messages went to the sealed segment after the loss")


@scenario(
    "C14",
    "A producer survives the failover of brokers, without a surfaced error.",
    "client behavior 9",
    bug="unsends-second",
)
def broker_failover_of_a_producer(stage: Stage) -> None:
    producer = stage.producer(stage.scalable_topic(4))
    stage.send(producer, keyed(0, 16))
    stage.side.kill(1)
    stage.send(producer, keyed(16, 16))
    stage.side.bring_back(1)
    stage.send(producer, keyed(32, 16))
    stored = {each.value for each in stage.history().stored}
    stage.that(stored >= set(values_of(keyed(0, 48))), "messages were lost")


@scenario("C14", "A consumer resumes after the failover of brokers.", "client behavior 9", bug="unsends-second")
def broker_failover_of_a_queue(stage: Stage) -> None:
    topic = stage.scalable_topic(4)
    consumer = stage.queue(topic)
    producer = stage.producer(topic)
    stage.send(producer, keyed(0, 16))
    stage.receive_all(consumer, values_of(keyed(0, 16)), acknowledge=True)
    stage.side.kill(1)
    try:
        stage.send(producer, keyed(16, 16))
        stage.receive_at_least(consumer, values_of(keyed(16, 16)), SECONDS)
    finally:
        stage.side.bring_back(1)


@scenario("C14", "Producers survive an unload of all segments.", "client behavior 9", bug="unsends-second")
def unload_under_load(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    producer = stage.producer(topic)
    stage.send(producer, keyed(0, 20))
    answer = stage.sending(producer, keyed(20, 100))
    stage.side.unload(topic)
    answer.wait(60)
    stored = {each.value for each in stage.history().stored}
    stage.that(stored >= set(values_of(keyed(0, 120))), "messages were lost")
