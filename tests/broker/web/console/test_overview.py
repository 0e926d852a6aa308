"""The overview: rates of now, the busiest topics, and what is stuck."""

from __future__ import annotations

from typing import Any

import trio

from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.web.console.stuck import REMEDIES, kind_of
from pulsarium.broker.web.console.waiting import PATIENCE_MS
from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.wire import TOPIC, Bed, Earliest, Shared, Wire, plain

OVERVIEW = "/pulsarium/overview"
PARTITIONED = "persistent://public/default/p"


async def test_a_new_broker_has_no_topic_of_a_user(rest: Rest) -> None:
    value = await rest.get(OVERVIEW)
    assert (value["userTopics"], value["busiest"], value["stuck"], value["stuckCount"]) == (0, [], [], 0)
    assert set(value["now"].values()) == {0}
    assert value["serviceUrl"] == "pulsar://localhost:6650"


async def test_the_rates_of_now_are_those_of_the_last_second(rest: Rest, sender: Wire) -> None:
    await sender.subscribe(type=Shared)
    await sender.publish(*[plain(b"x")] * 4)
    now = (await rest.get(OVERVIEW))["now"]
    assert (now["backlog"], now["storage"]) == (4, 4 * len(plain(b"x")))
    rates = set()
    for _ in range(20):
        await trio.sleep(0.1)
        rates.add((await rest.get(OVERVIEW))["now"]["in"])
    assert rates == {0, 4}


async def test_the_topics_that_moved_most_come_first(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", 2)
    counts = {"quiet": 0, "some": 3, f"{PARTITIONED}-partition-0": 2, f"{PARTITIONED}-partition-1": 2, "most": 9}
    for number, (name, count) in enumerate(counts.items()):
        await wire.producer(name, number)
        if count:
            await wire.publish(*[plain(b"x")] * count, producer_id=number)
    await trio.sleep(2)
    names = [row["name"].rpartition("/")[2] for row in (await rest.get(OVERVIEW))["busiest"]]
    assert names == ["most", "p", "some"]


async def test_a_topic_that_has_rested_for_a_minute_is_not_busy(rest: Rest, sender: Wire, bed: Bed) -> None:
    await sender.publish(plain(b"x"))
    await trio.sleep(2)
    assert [row["name"] for row in (await rest.get(OVERVIEW))["busiest"]] == [TOPIC]
    bed.broker.clock.jump(62)
    assert (await rest.get(OVERVIEW))["busiest"] == []


async def stuck_partitions(rest: Rest, wire: Wire, bed: Bed) -> list[dict[str, Any]]:
    """Return what is stuck after messages on some partitions have waited for too long."""
    await rest.done("PUT", f"{TOPICS}/p/partitions", 4)
    for index in range(4):
        await wire.producer(f"{PARTITIONED}-partition-{index}", index)
        await wire.subscribe(f"{PARTITIONED}-partition-{index}", "s", Shared, index, initialPosition=Earliest)
    for index in (1, 3):
        await wire.publish(plain(b"x", publish_time=bed.broker.clock.now_ms()), producer_id=index)
    bed.broker.clock.jump(PATIENCE_MS / 1000 + 1)
    value = await rest.get(OVERVIEW)
    assert value["stuckCount"] == len(value["stuck"])
    found: list[dict[str, Any]] = value["stuck"]
    return found


async def test_partitions_that_are_stuck_for_one_reason_are_one_cause(rest: Rest, wire: Wire, bed: Bed) -> None:
    (cause,) = await stuck_partitions(rest, wire, bed)
    assert (cause["topic"], cause["subscription"], cause["partitions"]) == (PARTITIONED, "s", [1, 3])
    assert (cause["kind"], cause["backlog"], cause["loop"]) == ("noPermits", 2, None)
    assert cause["remedy"] == REMEDIES[Reason.NO_PERMITS]
    assert bed.broker.clock.now_ms() - cause["sinceMs"] > PATIENCE_MS


async def test_partitions_that_are_stuck_for_other_reasons_are_other_causes(rest: Rest, wire: Wire, bed: Bed) -> None:
    bed.broker.clock.freeze()
    await stuck_partitions(rest, wire, bed)
    await wire.flow(consumer_id=3)
    await wire.message()
    causes = (await rest.get(OVERVIEW))["stuck"]
    assert {(cause["kind"], *cause["partitions"]) for cause in causes} == {("noPermits", 1), ("caughtUp", 3)}


async def test_the_segments_of_a_scalable_topic_are_named(rest: Rest, wire: Wire, bed: Bed) -> None:
    await rest.done("PUT", "/admin/v2/scalable/public/default/s?numInitialSegments=1")
    segment = "segment://public/default/s/0000-ffff-0"
    await wire.producer(segment)
    await wire.subscribe(segment, "sub", Shared, initialPosition=Earliest)
    await wire.publish(plain(b"x", publish_time=bed.broker.clock.now_ms()))
    bed.broker.clock.jump(PATIENCE_MS / 1000 + 1)
    (cause,) = (await rest.get(OVERVIEW))["stuck"]
    assert (cause["topic"], cause["partitions"]) == ("topic://public/default/s", ["0000-ffff-0"])


def test_each_reason_of_a_subscription_has_a_remedy() -> None:
    reasons = list(Reason)
    of_one_entry = reasons[reasons.index(Reason.ACKNOWLEDGED) :]
    assert REMEDIES.keys() == {*reasons} - {*of_one_entry}


def test_the_kind_of_a_reason_is_a_word() -> None:
    assert kind_of(Reason.NO_CONSUMER) == "noConsumer"
    assert len({kind_of(reason) for reason in Reason}) == len(Reason)
