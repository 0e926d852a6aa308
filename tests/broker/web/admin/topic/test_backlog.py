"""Skip, reset, expire, trim and truncate over REST, with the answers of a real broker."""

from __future__ import annotations

import pytest
import trio

from pulsarium.broker.model.ledger.position import LATEST, Position
from pulsarium.broker.model.subscription.skip import LARGEST_BATCH
from tests.broker.model.upkeep.policed import fresh, set_policies
from tests.broker.web.admin.rest import NON_PERSISTENT, TOPICS, Rest
from tests.broker.wire import Bed, Earliest, KeyShared, Latest, Shared, Type, Wire, batch_of, plain

SUB = f"{TOPICS}/t/subscription/sub"
PARTS = f"{TOPICS}/parted"


def body_of(position: Position, **fields: object) -> dict[str, object]:
    return {"ledgerId": position.ledger_id, "entryId": position.entry_id, **fields}


@pytest.fixture
async def sent(bed: Bed, wire: Wire, sender: Wire) -> list[Position]:
    """Publish six messages, and deliver two of them to a Shared consumer."""
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    found = await sender.publish(*(fresh(bed.broker, b"%d" % number, age=10) for number in range(6)))
    await wire.flow(2)
    await wire.messages(2)
    return found


# skip


async def test_skip_passes_over_entries_that_are_not_acknowledged(
    bed: Bed, wire: Wire, rest: Rest, sent: list[Position]
) -> None:
    await wire.ack(sent[1])
    await rest.done("POST", f"{SUB}/skip/2")
    cursor = bed.subscription().cursor
    assert cursor.mark_delete == sent[2]
    for count in (0, -1, "%2B0"):
        await rest.done("POST", f"{SUB}/skip/{count}")
        assert cursor.mark_delete == sent[2]
    await wire.flow(2)
    assert [message.position for message in await wire.messages(2)] == sent[3:5]
    await rest.done("POST", f"{SUB}/skip/10000")
    assert cursor.mark_delete == sent[-1]
    (consumer,) = bed.subscription().consumers
    assert (consumer.unacked, dict(consumer.pending)) == (0, {})


async def test_skip_all_keeps_consumers(bed: Bed, wire: Wire, sender: Wire, rest: Rest, sent: list[Position]) -> None:
    await rest.done("POST", f"{SUB}/skip_all")
    await rest.done("POST", f"{SUB}/skip_all")
    await wire.flow(10)
    await wire.quiet()
    await sender.publish(fresh(bed.broker, b"new"))
    assert await wire.payloads(1) == [b"new"]
    assert bed.subscription().cursor.mark_delete == sent[-1]


@pytest.mark.parametrize("type", [Shared, KeyShared])
@pytest.mark.parametrize("call", ["skip_all", "skip/3", "expireMessages/5"])
async def test_skipping_passes_over_delayed_and_waiting_messages(
    bed: Bed, wire: Wire, sender: Wire, rest: Rest, type: int, call: str
) -> None:
    await wire.subscribe(type=type)
    await wire.flow(1)
    later = bed.broker.clock.now_ms() + 20_000
    await sender.publish(
        fresh(bed.broker, b"delayed", age=10, deliver_at_time=later, partition_key="a"),
        fresh(bed.broker, b"owed", age=10, partition_key="a"),
        fresh(bed.broker, b"waits", age=10, partition_key="a"),
    )
    assert await wire.payloads(1) == [b"owed"]
    await rest.done("POST", f"{SUB}/{call}")
    await sender.publish(fresh(bed.broker, b"new", partition_key="a"))
    await wire.flow(10)
    assert await wire.payloads(1) == [b"new"]
    await wire.quiet(25)
    stats = (await rest.get(f"{TOPICS}/t/stats"))["subscriptions"]["sub"]
    assert (stats["msgBacklog"], stats["msgDelayed"], stats["unackedMessages"]) == (1, 0, 1)


async def test_skipped_messages_stay_skipped_after_a_reload(
    bed: Bed, wire: Wire, rest: Rest, sent: list[Position]
) -> None:
    await rest.done("POST", f"{SUB}/skip/1")
    await rest.done("PUT", f"{TOPICS}/t/unload")
    await wire.expect(Type.CLOSE_CONSUMER)
    assert bed.subscription().cursor.mark_delete == sent[0]


# reset


async def test_a_cursor_is_reset_to_a_time(bed: Bed, wire: Wire, rest: Rest, sent: list[Position]) -> None:
    await rest.done("POST", f"{SUB}/skip_all")
    await rest.done("POST", f"{SUB}/resetcursor/0")
    assert (await wire.expect(Type.CLOSE_CONSUMER)).consumer_id == 0
    await wire.subscribe(type=Shared)
    await wire.flow(1)
    assert (await wire.message()).position == sent[0]
    await rest.done("POST", f"{SUB}/resetcursor/{bed.broker.clock.now_ms()}")
    assert bed.subscription().cursor.backlog() == 0
    await rest.done("POST", f"{SUB}/resetcursor/-1")
    assert bed.subscription().cursor.backlog() == 6


async def test_a_cursor_is_reset_to_a_position(bed: Bed, wire: Wire, rest: Rest, sent: list[Position]) -> None:
    cursor = bed.subscription().cursor
    for body, read in [
        (body_of(sent[3], partitionIndex=-1), sent[3]),
        (body_of(sent[3], excluded=True), sent[4]),
        (body_of(Position(-1, -1)), sent[0]),
        (body_of(Position(99_999, 0)), Position(sent[0].ledger_id, 6)),
        (body_of(Position(-1, -1), excluded=True), sent[0]),
        (body_of(LATEST, excluded=True), Position(sent[0].ledger_id, 6)),
    ]:
        await rest.done("POST", f"{SUB}/resetcursor", body)
        assert cursor.read_position == read, body


async def test_a_cursor_is_reset_into_a_batch(bed: Bed, wire: Wire, sender: Wire, rest: Rest) -> None:
    await wire.subscribe()
    (sent,) = await sender.publish(batch_of(b"a", b"b", b"c"), num_messages=3)
    cursor = bed.subscription().cursor
    for fields, left in [
        ({"batchIndex": 1}, [0b110]),
        ({"batchIndex": 1, "excluded": True}, [0b100]),
        ({"batchIndex": 0}, []),
        ({"batchIndex": 0, "excluded": True}, [0b110]),
        ({"batchIndex": 7}, []),
    ]:
        await rest.done("POST", f"{SUB}/resetcursor", body_of(sent, **fields))
        assert (cursor.read_position, cursor.batch_acks.words(sent)) == (sent, left), fields
    await rest.done("POST", f"{SUB}/resetcursor", body_of(sent, batchIndex=2, excluded=True))
    assert cursor.backlog() == 0


async def test_a_batch_that_claims_to_be_endless_is_not_cut(bed: Bed, wire: Wire, sender: Wire, rest: Rest) -> None:
    """The batch stays whole, because its ack set would take a bit for each message."""
    await wire.subscribe()
    (sent,) = await sender.publish(plain(b"x", num_messages_in_batch=LARGEST_BATCH + 1))
    await rest.done("POST", f"{SUB}/resetcursor", body_of(sent, batchIndex=1))
    cursor = bed.subscription().cursor
    assert (cursor.read_position, cursor.batch_acks.words(sent)) == (sent, [])


async def test_a_reset_is_refused_while_another_goes_on(bed: Bed, rest: Rest, sent: list[Position]) -> None:
    bed.subscription().resetting = True
    busy = (412, "Failed for Subscription Busy: Failed to fence subscription")
    assert await rest.refused("POST", f"{SUB}/resetcursor/0") == busy
    assert await rest.refused("POST", f"{SUB}/resetcursor", body_of(sent[0])) == busy


# expire


@pytest.mark.req("B-24")
async def test_messages_older_than_asked_expire(
    bed: Bed, wire: Wire, sender: Wire, rest: Rest, sent: list[Position]
) -> None:
    await trio.sleep(1)
    (young,) = await sender.publish(fresh(bed.broker, b"young"))
    await rest.done("POST", f"{SUB}/expireMessages/5")
    subscription = bed.subscription()
    assert subscription.cursor.mark_delete == sent[-1]
    stats = (await rest.get(f"{TOPICS}/t/stats"))["subscriptions"]["sub"]
    assert (stats["msgExpired"], stats["totalMsgExpired"]) == (0, 6)
    assert stats["lastExpireTimestamp"] == subscription.expired.tried_ms > 0
    status, text = await rest.refused("POST", f"{SUB}/expireMessages/5")
    assert status == 409
    assert text.startswith(
        "Expire message by timestamp not issued on topic persistent://public/default/t for subscription sub due to"
    )
    await rest.done("POST", f"{SUB}/expireMessages/-1")  # a negative age reaches into the future
    assert subscription.cursor.mark_delete == young
    await trio.sleep(bed.broker.config.statsUpdateFrequencyInSecs)
    stats = (await rest.get(f"{TOPICS}/t/stats"))["subscriptions"]["sub"]
    assert (stats["msgExpired"], stats["msgRateExpired"]) == (7, 7 / 60)


async def test_expire_without_consumers_is_tried_whatever_there_is(
    bed: Bed, wire: Wire, rest: Rest, sent: list[Position]
) -> None:
    assert (await rest.refused("POST", f"{SUB}/expireMessages/1000"))[0] == 409
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await rest.done("POST", f"{SUB}/expireMessages/1000")
    assert bed.subscription().cursor.backlog() == 6
    await rest.done("POST", f"{SUB}/expireMessages/0")  # all messages are old enough
    assert (await rest.refused("POST", f"{SUB}/expireMessages/0"))[0] == 409


async def test_messages_of_all_subscriptions_expire(bed: Bed, wire: Wire, rest: Rest, sent: list[Position]) -> None:
    """The broker tries all subscriptions, and names the first one whose messages did not expire."""
    await wire.subscribe(name="a", consumer_id=1, initialPosition=Latest)
    status, text = await rest.refused("POST", f"{TOPICS}/t/all_subscription/expireMessages/5")
    assert status == 409
    assert "for subscription a due" in text
    assert bed.subscription().cursor.backlog() == 0


async def test_messages_up_to_a_position_expire(bed: Bed, wire: Wire, rest: Rest, sent: list[Position]) -> None:
    cursor = bed.subscription().cursor
    await rest.done("POST", f"{SUB}/expireMessages", body_of(sent[2]))
    assert cursor.mark_delete == sent[2]
    await rest.done("POST", f"{SUB}/expireMessages", body_of(sent[0]))
    assert cursor.mark_delete == sent[2]
    status, text = await rest.refused("POST", f"{SUB}/expireMessages", body_of(Position(sent[0].ledger_id, 6)))
    assert status == 409
    assert text.endswith("due to ongoing message expiration not finished or invalid message position provided.")
    status, text = await rest.refused("POST", f"{SUB}/expireMessages", body_of(sent[3], partitionIndex=1))
    assert status == 412
    assert text.endswith("partition index of passed in message position doesn't match partition index for the topic")


# trim, truncate


@pytest.mark.req("B-25")
async def test_trim_heeds_retention_and_truncate_does_not(
    bed: Bed, wire: Wire, rest: Rest, sent: list[Position]
) -> None:
    set_policies(bed.broker, retention_policies={"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
    await rest.done("POST", f"{SUB}/skip_all")
    await rest.done("PUT", f"{TOPICS}/t/unload")
    answer = await rest.call("POST", f"{TOPICS}/t/trim")
    assert (answer.status, answer.body) == (200, b"")
    assert bed.topic().ledger.count == 6
    await rest.done("DELETE", f"{TOPICS}/t/truncate")
    assert bed.topic().ledger.count == 0


# refusals, and partitioned topics


async def test_resetting_a_non_persistent_subscription_changes_nothing(wire: Wire, rest: Rest) -> None:
    await wire.subscribe(topic="non-persistent://public/default/n")
    await rest.done("POST", f"{NON_PERSISTENT}/n/subscription/sub/resetcursor/0")
    await wire.quiet()


@pytest.mark.parametrize("call", ["resetcursor", "expireMessages"])
async def test_a_position_is_needed(rest: Rest, sent: list[Position], call: str) -> None:
    status, text = await rest.refused("POST", f"{SUB}/{call}")
    assert (status, '"resetCursorData" is null' in text) == (400, True)


async def test_backlogs_of_a_partitioned_topic_go_partition_by_partition(
    bed: Bed, wire: Wire, sender: Wire, rest: Rest
) -> None:
    await rest.done("PUT", f"{PARTS}/partitions", 2)
    await rest.done("PUT", f"{PARTS}/subscription/sub", "earliest")
    for partition in range(2):
        await sender.producer(topic=f"persistent://public/default/parted-partition-{partition}", producer_id=7)
        await sender.publish(fresh(bed.broker, b"0", age=10), producer_id=7)
        await sender.ask(Type.CLOSE_PRODUCER, producer_id=7)
    body = {"ledgerId": 0, "entryId": 0}
    for call, value, text in [
        ("skip/1", None, "Skip messages on a partitioned topic is not allowed"),
        ("resetcursor", body, "Reset-cursor at position is not allowed for partitioned-topic"),
        ("expireMessages", body, "Expire message at position is not supported for partitioned-topic"),
    ]:
        assert await rest.refused("POST", f"{PARTS}/subscription/sub/{call}", value) == (405, text)
    topics = [bed.topic(f"persistent://public/default/parted-partition-{n}") for n in range(2)]

    def backlogs() -> list[int]:
        return [topic.subscriptions["sub"].cursor.backlog() for topic in topics]

    for call in ("skip_all", "expireMessages/5"):
        assert backlogs() == [1, 1]
        await rest.done("POST", f"{PARTS}/subscription/sub/{call}")
        assert backlogs() == [0, 0]
        await rest.done("POST", f"{PARTS}/subscription/sub/resetcursor/0")
    await rest.done("POST", f"{PARTS}-partition-0/subscription/sub/skip/1")
    assert backlogs() == [0, 1]
    status, text = await rest.refused("POST", f"{PARTS}/subscription/missing/skip_all")
    assert (status, text.endswith("topic persistent://public/default/parted")) == (404, True)
    status, text = await rest.refused("POST", f"{PARTS}/all_subscription/expireMessages/5")
    assert (status, "topic persistent://public/default/parted-partition-0 " in text) == (409, True)
    assert backlogs() == [0, 0]
    await rest.done("DELETE", f"{PARTS}/truncate")
    assert (await rest.call("POST", f"{PARTS}/trim")).status == 200


# replicators


@pytest.mark.parametrize("name", ["pulsar.repl", "pulsar.replx", "pulsar.repl.other"])
async def test_a_subscription_with_the_name_of_a_replicator_is_not_moved(bed: Bed, rest: Rest, name: str) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    url = f"{TOPICS}/t/subscription/{name}"
    await rest.done("PUT", url)
    replicator = (404, "Replicator not found")
    topic = f"Subscription {name} not found for topic persistent://public/default/t"
    assert await rest.refused("POST", f"{url}/skip/1") == replicator
    assert await rest.refused("POST", f"{url}/expireMessages/1") == replicator
    assert await rest.refused("POST", f"{url}/expireMessages", {"ledgerId": 1, "entryId": 1}) == replicator
    assert await rest.refused("GET", f"{url}/position/1") == replicator
    assert await rest.refused("POST", f"{url}/skip_all") == (404, topic)
    await rest.done("POST", f"{url}/resetcursor/1000")
    await rest.done("DELETE", url)
