"""Explanations of a backlog: redelivery loops, who holds messages, and what was passed."""

from __future__ import annotations

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.why import Why
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.base import redelivery_loop
from pulsarium.broker.model.subscription.loops import LOOP, MOST_LOOPS, RedeliveryCounts
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.lab.why.asking import entries, why
from tests.broker.model.dispatch.sharing import got, joined
from tests.broker.wire import TOPIC, Bed, Earliest, Exclusive, Latest, Shared, Type, Wire, plain


async def return_again(wire: Wire, times: int, *positions: Position) -> None:
    """Receive messages, and return those at `positions` (all of them without any), some times."""
    for _ in range(times):
        await got(wire)
        await wire.redeliver(positions)
    await got(wire)


async def test_a_message_that_is_returned_each_time_comes_first(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "worker-1", type=Shared)
    poison, _ = await sender.publish(*entries(2))
    await return_again(wire, LOOP, poison)
    found = why(bed)
    assert (found.reason, found.details["messageId"]) == ("redelivery-loop", str(poison))
    assert found.text.startswith(
        f"{poison} was delivered 6 times to worker-1, which returns it each time: "
        "skip the message, or set a dead letter policy on the consumer; beside that: "
    )
    assert found.details["loop"]["deliveries"] == LOOP + 1
    assert "it was delivered 6 times" in why(bed, poison).text


async def test_a_message_that_is_acknowledged_after_all_is_in_no_loop(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "worker-1", type=Shared)
    (poison,) = await sender.publish(*entries(1))
    await return_again(wire, LOOP, poison)
    await wire.ack(poison)
    assert redelivery_loop(bed.subscription()) is None
    assert why(bed).reason == "caught-up"


async def test_a_few_redeliveries_are_no_loop(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "worker-1", type=Shared)
    (position,) = await sender.publish(*entries(1))
    await return_again(wire, LOOP - 1, position)
    assert redelivery_loop(bed.subscription()) is None


async def test_an_exclusive_consumer_that_goes_back_each_time_is_in_a_loop(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "worker-1", type=Exclusive)
    first, second = await sender.publish(*entries(2))
    await return_again(wire, LOOP)
    assert redelivery_loop(bed.subscription()) == (first, LOOP + 1, "worker-1")
    await wire.ack(first)
    await got(wire)
    assert redelivery_loop(bed.subscription()) is None
    await return_again(wire, LOOP - 1)
    assert redelivery_loop(bed.subscription()) is None
    await return_again(wire, 1)
    assert redelivery_loop(bed.subscription()) == (second, LOOP + 1, "worker-1")


def test_only_some_loops_are_known_at_a_time() -> None:
    counts = RedeliveryCounts()
    for _ in range(LOOP):
        for entry in range(MOST_LOOPS + 1):
            counts.again(Position(0, entry))
    assert counts.worst() == Position(0, MOST_LOOPS - 1)
    for entry in range(MOST_LOOPS):
        del counts[Position(0, entry)]
    assert counts.worst() is None
    counts.again(Position(0, MOST_LOOPS))
    assert counts.worst() == Position(0, MOST_LOOPS)


async def test_the_holders_of_unacknowledged_messages_are_named(bed: Bed, sender: Wire) -> None:
    await joined(bed, "a", permits=2, type=Shared)
    await joined(bed, "b", permits=1, type=Shared)
    await sender.publish(*entries(5))
    found = why(bed)
    assert found.details["heldBy"] == {"a": 2, "b": 1}
    assert "a holds 2 unacknowledged entries, and 1 more consumers hold others" in found.text


async def test_older_messages_than_the_subscription_are_named(bed: Bed, sender: Wire) -> None:
    await sender.publish(*entries(3))
    await joined(bed, "c", initialPosition=Latest, permits=0)
    await sender.publish(*entries(1))
    found = why(bed)
    assert found.text.endswith("; the subscription began after 3 older entries")
    assert [(each["by"], each["entries"]) for each in found.details["passed"]] == [("the start of the subscription", 3)]


async def test_a_seek_that_passed_messages_is_named(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", permits=0, initialPosition=Earliest)
    sent = await sender.publish(*entries(3))
    await wire.ask(Type.SEEK, consumer_id=0, message_id=pb.MessageIdData(ledgerId=sent[2].ledger_id, entryId=2))
    found = why(bed)
    assert f"a seek or a reset of the cursor went past 2 entries, through {sent[1]}, at 20" in found.text
    assert found.details["passed"][0]["entries"] == 2


# partitioned topics


def ask(bed: Bed, message_id: str | None = None) -> Why:
    return bed.broker.cluster.attached(Lab).why(TOPIC, "sub", message_id)


async def partitioned(bed: Bed, wire: Wire, *counts: int) -> list[list[Position]]:
    """Subscribe to as many partitions as there are `counts`, and publish so many messages to each."""
    bed.broker.topics.create_partitions(TopicName.parse(TOPIC), len(counts))
    sent = []
    for index, count in enumerate(counts):
        topic = f"{TOPIC}-partition-{index}"
        await wire.subscribe(topic, consumer_id=index, type=Shared, initialPosition=Earliest, consumer_name="c")
        await wire.producer(topic, index)
        sent.append(await wire.publish(*(plain(b"x") for _ in range(count)), producer_id=index) if count else [])
    return sent


async def test_the_partition_that_is_stuck_most_comes_first(bed: Bed, wire: Wire) -> None:
    await partitioned(bed, wire, 0, 1, 3)
    found = ask(bed)
    assert (found.reason, found.details["backlog"]) == ("no-permits", 4)
    assert found.text.startswith("partition 2: c has no permits left: its client sent no FLOW")
    assert found.text.endswith("; 2 of 3 partitions have a backlog")
    rows = [(each["partition"], each["backlog"], each["reason"]) for each in found.details["partitions"]]
    assert rows == [(2, 3, "no-permits"), (1, 1, "no-permits"), (0, 0, "caught-up")]


async def test_a_partitioned_topic_without_a_backlog_has_one_sentence(bed: Bed, wire: Wire) -> None:
    await partitioned(bed, wire, 0, 0)
    assert (ask(bed).reason, ask(bed).text) == ("caught-up", "everything was acknowledged in all 2 partitions")


async def test_a_message_is_found_in_its_partition(bed: Bed, wire: Wire) -> None:
    _, (position,) = await partitioned(bed, wire, 0, 1)
    found = ask(bed, str(position))
    assert (found.reason, found.details["topic"]) == ("no-permits", f"{TOPIC}-partition-1")
