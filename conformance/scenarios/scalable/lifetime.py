"""Scenarios of resource lifetime and of the gate on features."""

from __future__ import annotations

from pulsarium.conformance.scenario import Stage, keyed, scenario, values_of


@scenario("C14", "Close completes pending publishes.", "client API 3.3", bug="delays send")
def close_completes_publishes(stage: Stage) -> None:
    producer = stage.producer(stage.scalable_topic(2))
    answer = stage.sending(producer, keyed(0, 50))
    stage.close(producer)
    answer.wait(30)
    stored = {each.value for each in stage.history().stored}
    stage.equal(stored, set(values_of(keyed(0, 50))), "messages that were stored before the close")


@scenario("C14", "Close is idempotent.", "client API 3.3", bug="once close")
def close_twice(stage: Stage) -> None:
    producer = stage.producer(stage.scalable_topic(1))
    stage.send(producer, keyed(0, 1))
    stage.close(producer)
    stage.ask("close", handle=producer)


@scenario("C14", "Per-segment resources are released on close.", "client behavior 10", bug="ignores close")
def close_releases_segment_producers(stage: Stage) -> None:
    producer = stage.producer(stage.scalable_topic(3))
    stage.send(producer, keyed(0, 30, keys=30))
    stage.close(producer)
    history = stage.history()
    stage.equal(len(history.of("CLOSE_PRODUCER")), len(history.producers), "CLOSE_PRODUCER of segment producers")


@scenario(
    "C1",
    "Every segment is reached on the broker that the layout names, whichever broker the client knows.",
    "wire protocol 5",
    bug="unsends-second",
)
def client_of_the_other_broker(stage: Stage) -> None:
    topic = stage.scalable_topic(4)
    producer = stage.producer(topic, client=stage.connect(1))
    stage.send(producer, keyed(0, 20, keys=20))
    stored = {each.value for each in stage.history().stored}
    stage.equal(stored, set(values_of(keyed(0, 20, keys=20))), "messages by way of the second broker")
