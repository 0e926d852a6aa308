"""Scenarios of the age of a backlog."""

from __future__ import annotations

from pulsarium.conformance.scenario import Stage, scenario

PIP_488 = "PIP-488, age of the backlog of a subscription"


@scenario(
    "PIP-488",
    "The backlog of a subscription has an age until a client has acknowledged its last message.",
    PIP_488,
    bug="ignores acknowledge",
    pip=488,
)
def a_backlog_has_an_age_until_its_last_acknowledgement(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, "Shared")

    def age() -> int:
        return int(stage.side.stats(topic)["subscriptions"]["s"]["oldestBacklogMessageAgeSeconds"])

    stage.equal(age(), -1, "age of no backlog")
    stage.send(stage.producer(topic), ["a", "b"])
    first, second = stage.receive_all(consumer, ["a", "b"])
    stage.acknowledge(consumer, first)
    stage.until(lambda: stage.backlog(topic) == 1, "the first message was not acknowledged")
    stage.that(age() >= 0, "the backlog has no age")
    stage.acknowledge(consumer, second)
    stage.until(lambda: age() == -1, "the backlog has an age, and all its messages were acknowledged")
