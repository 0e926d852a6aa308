"""Scenarios of permits: a client gives back what MESSAGE says that it cost."""

from __future__ import annotations

from pulsarium.conformance.scenario import Stage, scenario, texts

PIP_491 = "PIP-491, returning exactly the permits that the broker used"


def permits(stage: Stage, topic: str) -> int:
    """Return the permits that the only consumer of a topic has at the broker."""
    (consumer,) = stage.side.stats(topic)["subscriptions"]["s"]["consumers"]
    return int(consumer["availablePermits"])


def has_permits(stage: Stage, topic: str, count: int) -> None:
    """Fail unless the only consumer of a topic soon has so many permits."""
    stage.until(lambda: permits(stage, topic) == count, f"the consumer has not its {count} permits again")


@scenario(
    "PIP-491",
    "A damaged batch gives back as many permits as it cost.",
    PIP_491,
    bug="sets consumer.queue 200",
    pip=491,
)
def a_damaged_batch_gives_its_permits_back(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared", queue=100)
    producer = stage.producer(topic, batch=100)
    stage.side.damage(topic, 5)
    for number in range(5):
        stage.send(producer, texts(100 * number, 100))
    has_permits(stage, topic, 100)
    stage.send(producer, texts(500, 10))
    stage.receive_in_order(consumer, texts(500, 10))


@scenario(
    "PIP-491",
    "A damaged part of a batch gives back the permits of the part.",
    PIP_491,
    bug="sets consumer.queue 20",
    pip=491,
)
def a_damaged_part_of_a_batch_gives_its_permits_back(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared", queue=10, batch_index=True)
    stage.send(stage.producer(topic, batch=10), texts(0, 10))
    got = stage.receive_in_order(consumer, texts(0, 10))
    for each in got[:5]:
        stage.acknowledge(consumer, each)
    stage.until(lambda: stage.unacknowledged(topic) == 5, "half of the batch was not acknowledged")
    stage.side.damage(topic, 1)
    for each in got[5:]:
        stage.ask("negative-acknowledge", consumer=consumer, message=each["id"])
    stage.until(lambda: stage.backlog(topic) == 0, "the damaged part was not acknowledged")
    has_permits(stage, topic, 10)


@scenario(
    "PIP-491",
    "Permits of a consumer that the broker closed are not given to its successor.",
    PIP_491,
    bug="sets consumer.queue 200",
    pip=491,
)
def permits_are_not_given_to_the_next_consumer(stage: Stage) -> None:
    stage.need("open", "open.reconnect")
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared", queue=100)
    producer = stage.producer(topic, batch=40)
    stage.side.damage(topic, 1)
    stage.send(producer, texts(0, 40))
    stage.until(lambda: stage.backlog(topic) == 0, "the damaged batch was not acknowledged")
    stage.side.unload(topic)
    stage.send(producer, texts(40, 10))
    stage.receive_in_order(consumer, texts(40, 10), acknowledge=True)
    stage.until(lambda: stage.backlog(topic) == 0, "the messages were not acknowledged")
    left = permits(stage, topic)
    stage.that(left <= 100, f"the consumer has {left} permits, and room for 100 messages")
