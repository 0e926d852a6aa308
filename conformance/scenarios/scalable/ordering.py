"""Scenarios of order and loss: messages of one key while segments split, merge and move."""

from __future__ import annotations

from collections.abc import Callable

from pulsarium.conformance.scenario import Stage, keyed, scenario, values_of


def _stored_in_order(stage: Stage, values: list[str]) -> None:
    """Fail unless segments stored exactly these values, and each key's in order along the lineage of segments."""
    stored = stage.history().stored
    stage.equal(sorted(each.value for each in stored), sorted(values), "values that segments confirmed")
    stage.in_order([{"key": each.key, "value": each.value} for each in stored])


def _under_load(stage: Stage, topic: str, change: Callable[[], None], rounds: int = 4) -> list[str]:
    """Publish all the time while the layout changes, and return the values."""
    producer = stage.producer(topic)
    stage.send(producer, keyed(0, 40))
    values = values_of(keyed(0, 40))
    for number in range(1, rounds + 1):
        more = keyed(40 * number, 40)
        answer = stage.sending(producer, more)
        if number <= 2:
            change()
        answer.wait(60)
        values += values_of(more)
    return values


@scenario("C3", "All messages for one key are published in Send-call order.", "client behavior 3", bug="unorders")
def order_of_asynchronous_sends(stage: Stage) -> None:
    stage.send(stage.producer(stage.scalable_topic(4)), keyed(0, 200))
    _stored_in_order(stage, values_of(keyed(0, 200)))


@scenario("C3", "Per-key order is preserved across a split.", "client behavior 3", bug="raw overtakes")
def order_across_split_under_load(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    _stored_in_order(stage, _under_load(stage, topic, lambda: stage.split_all(topic)))


@scenario("C3", "Per-key order is preserved across a merge.", "client behavior 3", bug="unorders")
def order_across_merge_under_load(stage: Stage) -> None:
    topic = stage.scalable_topic(3)

    def merge() -> None:
        active = stage.active(topic)
        segments = stage.side.layout(topic)["segments"]
        active.sort(key=lambda number: segments[str(number)]["hashRange"]["start"])
        stage.side.merge(topic, active[0], active[1])

    _stored_in_order(stage, _under_load(stage, topic, merge))


@scenario(
    "C4",
    "When the target segment is sealed, a client re-routes and retries. The send does not fail.",
    "client behavior 4",
    bug="raw drops-unconfirmed",
)
def sends_survive_a_split(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    producer = stage.producer(topic)
    stage.send(producer, keyed(0, 8))
    stage.side.split(topic, 0)
    stage.send(producer, keyed(8, 8))
    later = {each.segment.id for each in stage.history().stored[8:]}
    stage.equal(later, {1, 2}, "segments of the messages after the split")


@scenario(
    "C14", "A producer survives many layout changes without a surfaced error.", "client behavior 9", bug="unorders"
)
def sends_survive_five_splits(stage: Stage) -> None:
    topic = stage.scalable_topic(1)
    producer = stage.producer(topic)
    for number in range(5):
        stage.send(producer, keyed(number * 10, 10))
        stage.side.split(topic, stage.active(topic)[0])
    stage.send(producer, keyed(50, 10))
    _stored_in_order(stage, values_of(keyed(0, 60)))


@scenario(
    "C3",
    "Split and merge during active produce and consume: no loss, no reorder, no surfaced error.",
    "client API 3.2",
    bug="unsends-second",
)
def split_and_merge_lose_nothing(stage: Stage) -> None:
    topic = stage.scalable_topic(2)
    consumer = stage.queue(topic)
    values = _under_load(stage, topic, lambda: stage.split_all(topic))
    first, second = sorted(stage.active(topic))[:2]
    stage.side.merge(topic, first, second)
    stage.receive_all(consumer, values, acknowledge=True)


@scenario(
    "C5",
    "A client exposes the last published sequence id, which rises with each message.",
    "client API 3.2",
    bug="says last-sequence.sequence 7",
)
def sequence_ids_rise(stage: Stage) -> None:
    producer = stage.producer(stage.scalable_topic(2), name="mine")
    seen = []
    for number in range(3):
        stage.send(producer, keyed(number * 4, 4))
        seen.append(stage.ask("last-sequence", producer=producer)["sequence"])
    stage.that(seen[0] < seen[1] < seen[2], f"last sequence ids {seen} do not rise")


@scenario("C14", "Flush awaits all publishes issued before the call.", "client API 3.3", bug="delays send")
def flush_waits_for_receipts(stage: Stage) -> None:
    producer = stage.producer(stage.scalable_topic(2))
    answer = stage.sending(producer, keyed(0, 50))
    stage.ask("flush", producer=producer)
    stored = [each.value for each in stage.history().stored]
    answer.wait(30)
    stage.equal(len(stored), 50, "messages that were stored when flush returned")
