"""Scenarios of the error model."""

from __future__ import annotations

from pulsarium.conformance.scenario import Stage, keyed, scenario, values_of

LOOKUP_CREATES = (
    "Auto-creation: wire-protocol.md section 9 lets the lookup create a missing topic. Pulsar 5.0 does, and 5.0.0-M1 "
    "answers TopicNotFound: --profile."
)


@scenario(
    "C12",
    "A missing topic is created where policy permits, else the operation fails with NotFound.",
    "client API 7",
    contradiction=LOOKUP_CREATES,
    bug="ignores producer",
)
def missing_topic_of_a_producer(stage: Stage) -> None:
    topic = stage.name_of_topic()
    if stage.spec == "5.0-m1":
        stage.refused("NotFound", "producer", **{"as": "absent"}, client=stage.client, topic=topic)
        return
    stage.send(stage.producer(topic), keyed(0, 3))
    stage.equal(stage.active(topic), [0], "active segments of the created topic")


@scenario(
    "C12",
    "A not-found result of topic resolution maps to NotFound, and not to a generic error.",
    "error model 2",
    bug="raw generic-errors",
)
def missing_topic_without_creation(stage: Stage) -> None:
    override = {"allowAutoTopicCreation": False}
    stage.side.call("POST", f"/admin/v2/namespaces/{stage.namespace}/autoTopicCreation", override)
    stage.refused("NotFound", "producer", **{"as": "absent"}, client=stage.client, topic=stage.name_of_topic())


@scenario("C12", "NotFound of a queue consumer is distinct too.", "error model 2", bug="succeeds queue")
def missing_topic_of_a_queue(stage: Stage) -> None:
    override = {"allowAutoTopicCreation": False}
    stage.side.call("POST", f"/admin/v2/namespaces/{stage.namespace}/autoTopicCreation", override)
    fields = {"as": "absent", "client": stage.client, "topic": stage.name_of_topic(), "subscription": "s"}
    stage.refused("NotFound", "queue", **fields)


@scenario("C13", "An operation of a closed producer fails with AlreadyClosed.", "error model 2", bug="succeeds send")
def closed_producer_refuses_sends(stage: Stage) -> None:
    producer = stage.producer(stage.scalable_topic(1))
    stage.send(producer, keyed(0, 1))
    stage.close(producer)
    stage.refused("AlreadyClosed", "send", producer=producer, messages=[{"value": "late"}])


@scenario(
    "C6",
    "Exclusive access fails at CreateProducer when another producer holds it.",
    "client API 3.1",
    bug="without producer.access",
)
def exclusive_access_collides_at_create(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    stage.producer(topic, name="first", access="exclusive")
    other = stage.connect(1)
    fields = {"as": "second", "client": other, "topic": topic, "name": "second", "access": "exclusive"}
    stage.refused(["ProducerBusy", "Fenced"], "producer", **fields)


@scenario(
    "C6",
    "Under exclusive access a client attaches to every active segment at create time.",
    "client behavior 2",
    bug="raw lazy-exclusive",
)
def exclusive_access_is_eager(stage: Stage) -> None:
    stage.producer(stage.scalable_topic(3), name="only", access="exclusive")
    opened = {segment.id for segment, _ in stage.history().producers}
    stage.equal(opened, {0, 1, 2}, "segments of the exclusive producer")


@scenario(
    "C6", "Exclusive access with fencing shuts the older producer out.", "client API 3.1", bug="without producer.access"
)
def exclusive_access_with_fencing(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    first = stage.producer(topic, name="first", access="exclusive")
    second = stage.producer(topic, client=stage.connect(1), name="second", access="exclusive-with-fencing")
    stage.send(second, keyed(0, 4))
    messages = [{"key": "k0", "value": "late"}]
    stage.refused(["Fenced", "ProducerBusy", "AlreadyClosed"], "send", producer=first, messages=messages)


@scenario("C13", "A failed publish does not invalidate the producer.", "error model 1", bug="unsends-second")
def producer_outlives_an_error(stage: Stage) -> None:
    producer = stage.producer(stage.scalable_topic(1))
    stage.send(producer, keyed(0, 2))
    try:
        stage.ask("send", producer=producer, messages=[{"key": "k0", "value": "x" * (6 << 20)}])
    except Exception as error:  # any kind of error will do, and a chunking client has none
        stage.that(type(error).__name__ == "ClientError", f"the adapter failed: {error}")
    stage.send(producer, keyed(2, 2))
    stored = {each.value for each in stage.history().stored}
    stage.that(stored >= set(values_of(keyed(0, 4))), "messages around the failed publish were lost")
