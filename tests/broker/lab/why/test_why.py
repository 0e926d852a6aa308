"""Explanations of messages that are not delivered: each reason, on a broker that has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.broker.config.profile import PULSAR_4_2
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.why import NotThere, Why, WhyError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.skip import Skip, SkipEntry, skip, skip_all
from pulsarium.proto.entry import build
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.compacted import Retained, compacted
from tests.broker.held import HeldStorage
from tests.broker.lab.why.asking import entries, why
from tests.broker.loopback import until
from tests.broker.model.dispatch.sharing import got, joined, keyed, sticky
from tests.broker.model.upkeep.policed import fresh, set_policies
from tests.broker.wall import Wall
from tests.broker.web.admin.rest import TOPICS, rest_of
from tests.broker.wire import (
    TOPIC,
    Bed,
    Cumulative,
    Earliest,
    Exclusive,
    Failover,
    KeyShared,
    Shared,
    Type,
    Wire,
    batch_of,
    message_id,
    plain,
    serving,
)

# consumers, delays and reads


async def test_a_subscription_without_a_consumer_is_the_reason(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    (position,) = await sender.publish(plain(b"0"))
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    found = why(bed, position)
    assert (found.reason, found.text) == ("no-consumer", "no consumer is connected")
    assert found.details["type"] == "Exclusive"
    assert found.details["messageId"] == str(position)


async def test_a_subscription_that_nobody_ever_used(bed: Bed, wire: Wire, sender: Wire) -> None:
    bed.topic().subscribe("sub", earliest=True)
    (position,) = await sender.publish(plain(b"0"))
    assert why(bed, position).reason == "no-consumer"


@pytest.mark.parametrize("type", [Exclusive, Shared])
async def test_a_consumer_without_permits_is_the_reason(bed: Bed, sender: Wire, type: int) -> None:
    wire = await joined(bed, "c", type=type, permits=2)
    sent = await sender.publish(*entries(5))
    assert len(await got(wire)) == 2
    found = why(bed, sent[4])
    assert (found.reason, found.text) == (
        "no-permits",
        "c has no permits left: its client sent no FLOW; 2 entries come before it",
    )
    (consumer,) = found.details["consumers"]
    assert (consumer["name"], consumer["permits"], consumer["writable"]) == ("c", 0, True)
    assert found.details["entriesBefore"] == 2
    assert "entriesBefore" not in why(bed, sent[2]).details
    assert why(bed, sent[1]).reason == "delivered"


async def test_no_permits_of_several(bed: Bed, sender: Wire) -> None:
    await joined(bed, "a", type=Shared, permits=0)
    await joined(bed, "b", type=Shared, permits=0)
    (position,) = await sender.publish(plain(b"0"))
    assert why(bed, position).text == "none of the 2 consumers has permits left: their clients sent no FLOW"


async def test_a_connection_that_is_full(bed: Bed, sender: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    await joined(bed, "c", type=Shared)
    monkeypatch.setattr("pulsarium.broker.session.session.HIGH_WATER", 0)
    (position,) = await sender.publish(plain(b"0"))
    found = why(bed, position)
    assert (found.reason, found.text) == ("not-writable", "the connection of c is full: the client does not read")
    assert found.details["consumers"][0]["writable"] is False


async def test_the_failover_delay(autojump_clock: object) -> None:
    async with serving(Config(activeConsumerFailoverDelayTimeMillis=3_600_000)) as bed:
        sender = await bed.connect()
        await sender.producer()
        await joined(bed, "c", type=Failover)
        (position,) = await sender.publish(plain(b"0"))
        found = why(bed, position)
        assert found.reason == "failover-delay"
        assert found.text == (
            "c became active, and is served only after activeConsumerFailoverDelayTimeMillis (3600000 ms)"
        )
        assert found.details["activeConsumer"] == "c"


async def test_messages_of_the_former_active_consumer_wait_for_the_failover_delay(autojump_clock: object) -> None:
    async with serving(Config(activeConsumerFailoverDelayTimeMillis=1000)) as bed:
        sender = await bed.connect()
        await sender.producer()
        first = await joined(bed, "a", type=Failover)
        await joined(bed, "b", type=Failover, priority_level=1)
        await trio.sleep(2)
        sent = await sender.publish(*entries(2))
        await first.rest(0.001)
        assert (why(bed, sent[0]).reason, why(bed).reason) == ("delivered", "caught-up")
        await first.ask(Type.CLOSE_CONSUMER, consumer_id=0)
        found = why(bed)
        assert (found.reason, found.details["messageId"]) == ("failover-delay", str(sent[0]))
        assert "entriesBefore" not in found.details
        assert why(bed, sent[1]).reason == "failover-delay"


async def test_nobody_is_active_after_a_seek(bed: Bed, sender: Wire) -> None:
    first = await joined(bed, "a", type=Failover)
    await joined(bed, "b", type=Failover, priority_level=1)
    await trio.sleep(2)
    sent = await sender.publish(*entries(2))
    await first.rest(0.001)
    await first.ask(Type.SEEK, consumer_id=0, message_id=message_id(sent[0]))
    found = why(bed)
    assert (found.reason, found.details["messageId"]) == ("no-consumer", str(sent[0]))
    assert found.text == "the cursor was moved, and the consumers that stayed are passive until one joins or leaves"


async def test_a_consumer_that_is_not_active(bed: Bed, sender: Wire) -> None:
    await joined(bed, "a", type=Failover, priority_level=0, permits=0)
    await joined(bed, "b", type=Failover, priority_level=1)
    await trio.sleep(2)
    (position,) = await sender.publish(plain(b"0"))
    found = why(bed, position)
    assert (found.reason, found.text) == ("no-permits", "a has no permits left: its client sent no FLOW")
    assert (found.details["activeConsumer"], found.details["standby"]) == ("a", ["b"])


async def owing(bed: Bed) -> Why:
    """Publish ten entries one by one to a consumer that acknowledges nothing, and explain the sixth."""
    sender = await bed.connect()
    await sender.producer()
    await joined(bed, "c", type=Shared)
    sent = [(await sender.publish(entry))[0] for entry in entries(10)]
    return why(bed, sent[5])


async def test_a_consumer_that_owes_too_much(autojump_clock: object) -> None:
    async with serving(Config(maxUnackedMessagesPerConsumer=4)) as bed:
        found = await owing(bed)
        assert (found.reason, found.details["limit"]) == ("consumers-owe", 4)
        assert found.text == (
            "c has 4 or more unacknowledged messages (maxUnackedMessagesPerConsumer); 1 entry comes before it"
        )


async def test_a_subscription_whose_consumers_owe_too_much(autojump_clock: object) -> None:
    async with serving(Config(maxUnackedMessagesPerSubscription=5)) as bed:
        found = await owing(bed)
        assert (found.reason, found.details["limit"], found.details["unacked"]) == ("subscription-owes", 5, 5)
        assert found.text == "its consumers have 5 unacknowledged messages; maxUnackedMessagesPerSubscription is 5"


async def test_why_says_that_a_message_was_delivered(bed: Bed, sender: Wire) -> None:
    for kind, name in ((Shared, "shared"), (Exclusive, "exclusive")):
        wire = await bed.connect()
        await wire.subscribe(name=name, type=kind, consumer_name="c")
        await wire.flow()
        (position,) = await sender.publish(plain(b"0"))
        await wire.message()
        found = why(bed, position, name=name)
        assert found.reason == "delivered"
        assert found.text.startswith(
            "c has it and has not acknowledged it; the last delivery to this consumer was at 20"
        )
        assert found.details["consumer"] == "c"


async def test_a_redelivered_message_waits_for_permits(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", type=Shared, permits=1)
    (position,) = await sender.publish(plain(b"0"))
    await got(wire)
    await wire.redeliver([position])
    await wire.alive()
    found = why(bed, position)
    assert (found.reason, found.details["redelivery"], found.details["redeliveryCount"]) == ("no-permits", True, 1)
    assert found.text.startswith("it waits to be delivered again: c has no permits left")
    await wire.flow(1)
    await got(wire)
    assert why(bed, position).reason == "delivered"


async def test_a_delayed_message_shows_when_it_is_due(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", type=Shared)
    due = bed.broker.clock.now_ms() + 3_600_000
    (position,) = await sender.publish(plain(b"0", deliver_at_time=due))
    assert await got(wire) == []
    found = why(bed, position)
    assert found.reason == "delayed"
    assert found.text == f"it is delayed until {found.details['deliverAt']}, which is in 60.0 minutes"
    assert found.details["secondsLeft"] == pytest.approx(3600, abs=5)


async def test_a_delay_that_is_over_before_the_tick(bed: Bed, sender: Wire) -> None:
    """The bucket begins after the first tick, up to 512 ms before the time. The second tick is 400 ms after that."""
    wire = await joined(bed, "c", type=Shared)
    (position,) = await sender.publish(plain(b"0", deliver_at_time=bed.broker.clock.now_ms() + 1600))
    await trio.sleep(1.8)
    found = why(bed, position)
    assert (found.reason, found.details["secondsLeft"]) == ("delayed", pytest.approx(-0.2, abs=0.01))
    assert found.text == (
        f"it was delayed until {found.details['deliverAt']}; the next tick (delayedDeliveryTickTimeMillis) delivers it"
    )
    assert (await wire.message()).position == position


@pytest.mark.parametrize("due", [253_402_300_800_000, 2**63 - 1])
async def test_a_delay_beyond_the_calendar(bed: Bed, sender: Wire, due: int) -> None:
    await joined(bed, "c", type=Shared)
    (position,) = await sender.publish(
        build(pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=2**64 - 1, deliver_at_time=due), b"")
    )
    found = why(bed, position)
    assert found.reason == "delayed"
    assert found.details["deliverAt"].startswith("+")


async def test_entries_that_are_read_back_from_disk() -> None:
    store = HeldStorage()
    async with serving(Config(managedLedgerCacheSizeMB=0), storage=store) as bed:
        sender = await bed.connect()
        await sender.producer()
        bed.topic().subscribe("sub", earliest=True)
        (position,) = await sender.publish(plain(b"0"))
        await sender.publish(plain(b"1"))
        store.holding_reads = True
        wire = await joined(bed, "c", type=Exclusive)
        await wire.alive()
        found = why(bed, position)
        assert (found.reason, found.text) == ("loading", "the entries are being read back from disk")
        store.release_reads()


# keys, chunks and rates


async def test_a_key_that_drains(bed: Bed, sender: Wire) -> None:
    keys = [f"key-{number}" for number in range(20)]
    old = await joined(bed, "c0")
    first = await sender.publish(*keyed(keys))
    await got(old)
    await joined(bed, "c1")
    again = await sender.publish(*keyed(keys))
    await got(old)
    found = next(each for each in (why(bed, position) for position in again) if each.reason == "draining")
    assert (found.details["consumer"], found.details["drainingConsumer"], found.details["unacked"]) == ("c1", "c0", 1)
    assert found.text == (
        f"its key hash {found.details['keyHash']} belongs to c1 now, but c0 has not acknowledged 1 entry of it yet"
    )
    assert len(first) == 20


async def test_a_key_whose_consumer_cannot_take_it(bed: Bed, sender: Wire) -> None:
    idle, busy = await joined(bed, "c0", permits=1), await joined(bed, "c1")
    sent = await sender.publish(*keyed([f"key-{number}" for number in range(20)] * 2))
    had = {message.position for message in [*await got(idle), *await got(busy)]}
    found = why(bed, next(position for position in sent if position not in had))
    assert found.reason == "waiting"
    assert found.text == (f"it is for c0, which has the key hash {found.details['keyHash']}, and has no permits left")
    assert found.details["consumer"] == "c0"


async def test_a_key_in_a_gap_of_sticky_ranges_has_no_owner(bed: Bed, sender: Wire) -> None:
    low = await joined(bed, "low", keySharedMeta=sticky((0, 20000)))
    sent = await sender.publish(*keyed([f"key-{number}" for number in range(20)]))
    had = {message.position for message in await got(low)}
    found = why(bed, next(position for position in sent if position not in had))
    assert found.reason == "no-owner"
    assert found.text == f"no consumer has its key hash {found.details['keyHash']}: the STICKY ranges leave a gap"


async def test_a_key_outside_of_the_hash_ranges_of_an_exclusive_consumer(bed: Bed, sender: Wire) -> None:
    low = await joined(bed, "low", type=Exclusive, keySharedMeta=sticky((0, 20000)))
    sent = await sender.publish(*keyed([f"key-{number}" for number in range(20)]))
    had = {message.position for message in await got(low)}
    found = why(bed, next(position for position in sent if position not in had))
    assert found.reason == "no-owner"
    key_hash = found.details["keyHash"]
    assert key_hash > 20000
    assert found.text == f"its key hash {key_hash} is outside of the hash ranges of low, the only consumer"
    assert "consumer" not in found.details


async def test_looking_ahead_has_an_end(autojump_clock: object) -> None:
    config = Config(keySharedLookAheadMsgInReplayThresholdPerConsumer=5, dispatcherMaxReadBatchSize=5)
    async with serving(config) as bed:
        sender = await bed.connect()
        await sender.producer()
        idle, busy = await joined(bed, "c0", permits=1), await joined(bed, "c1")
        sent = await sender.publish(*keyed(["key-0"] * 50))
        await got(idle)
        await got(busy)
        found = why(bed, sent[-1])
        assert (found.reason, found.details["waiting"]) == ("look-ahead", pytest.approx(12, abs=4))
        assert "entries wait for their consumers: no more are read" in found.text


def chunk(number: int) -> bytes:
    return plain(b"", uuid="x", chunk_id=number, num_chunks_from_msg=3)


@pytest.mark.serving(profile=PULSAR_4_2)
async def test_an_orphan_chunk_is_told(bed: Bed, sender: Wire) -> None:
    first = await joined(bed, "a", type=Shared, permits=1)
    (orphan,) = await sender.publish(chunk(1))
    await got(first)
    assert why(bed, orphan).reason == "orphan-chunk"
    assert why(bed).details["messageId"] == str(orphan)


async def test_a_chunk_waits_for_the_consumer_of_the_chunks_before(bed: Bed, sender: Wire) -> None:
    first = await joined(bed, "a", type=Shared, permits=1)
    await sender.publish(chunk(0))
    await got(first)
    await joined(bed, "b", type=Shared)
    (position,) = await sender.publish(chunk(2))
    found = why(bed, position)
    assert found.text == "it is for a, which has the chunks of the same message, and has no permits left"


async def test_a_dispatch_rate(bed: Bed, sender: Wire) -> None:
    rate = {"dispatchThrottlingRateInMsg": 1, "ratePeriodInSecond": 30}
    set_policies(bed.broker, topicDispatchRate={"standalone": rate})
    wire = await joined(bed, "a")
    sent = await sender.publish(plain(b"0"), plain(b"1"))
    await got(wire)
    found = why(bed)
    assert found.details["messageId"] == str(sent[1])
    assert (found.reason, found.details["limitedBy"]) == ("rate-limited", "Topic")
    assert found.details["secondsLeft"] == pytest.approx(30, abs=0.1)
    assert f"rate limited until {found.details['until']}, which is in 30.0 seconds" in found.text
    assert found.text.endswith("the dispatch rate of its topic is used up; a holds 1 unacknowledged entry")


async def test_a_pause_is_as_long_after_the_clock_was_set(wall: Wall, bed: Bed, sender: Wire) -> None:
    rate = {"dispatchThrottlingRateInMsg": 1, "ratePeriodInSecond": 30}
    set_policies(bed.broker, topicDispatchRate={"standalone": rate})
    wire = await joined(bed, "a")
    await sender.publish(plain(b"0"), plain(b"1"))
    await got(wire)
    wall.ahead += 3600
    assert why(bed).details["secondsLeft"] == pytest.approx(30, abs=0.1)


# messages that are no longer in the backlog, or never were


async def test_individually_acknowledged_messages(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.flow()
    sent = await sender.publish(*entries(3))
    await wire.ack(sent[2])
    await wire.ack(sent[0])
    for position in (sent[0], sent[2]):
        found = why(bed, position)
        assert (found.reason, found.text) == (
            "acknowledged",
            "a consumer acknowledged it (or it was skipped by its id)",
        )


async def test_a_cumulative_acknowledgement_is_named(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.flow()
    sent = await sender.publish(*entries(4))
    await wire.ack(sent[0])
    await wire.ack(sent[1], type=Cumulative)
    await wire.ack(sent[2], type=Cumulative)
    assert [why(bed, position).reason for position in sent] == [
        "acknowledged",
        "acknowledged-cumulatively",
        "acknowledged-cumulatively",
        "delivered",
    ]
    found = why(bed, sent[1])
    assert found.text == f"a cumulative acknowledgement went past it, through {sent[2]}"


async def test_a_move_over_an_acknowledged_message_leaves_open_which_messages_a_consumer_acknowledged(
    bed: Bed, wire: Wire, sender: Wire
) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow()
    sent = await sender.publish(*entries(3))
    await wire.ack(sent[1])
    skip_all(bed.subscription())
    assert why(bed, sent[0]).text.endswith("; unless a consumer had acknowledged it before")
    assert "unless" in why(bed, sent[1]).text


async def test_a_seek_to_the_past_leaves_the_reasons_of_what_it_does_not_give_back(
    bed: Bed, wire: Wire, sender: Wire
) -> None:
    await wire.subscribe(type=Shared)
    sent = await sender.publish(*entries(3))
    skip(bed.subscription(), 2)
    await wire.ask(Type.SEEK, consumer_id=0, message_id=message_id(sent[1]))
    assert [why(bed, position).reason for position in sent] == ["skipped", "no-consumer", "no-consumer"]


async def test_an_expired_message_shows_when_it_expired(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    (position,) = await sender.publish(fresh(bed.broker, b"0", age=100))
    set_policies(bed.broker, message_ttl_in_seconds=60)
    bed.topic().check_ttl()
    found = why(bed, position)
    assert (found.reason, found.details["by"]) == ("expired", "TTL or a request to expire messages")
    assert found.details["at"].startswith("20")


async def test_a_skipped_message_shows_the_request_that_skipped_it(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    sent = await sender.publish(*entries(4))
    skip(bed.subscription(), 1)
    assert why(bed, sent[0]).reason == "skipped"
    assert why(bed, sent[1]).reason == "no-permits"
    Skip(bed.subscription(), [SkipEntry(*sent[1])]).apply()
    assert why(bed, sent[1]).reason == "acknowledged"
    skip_all(bed.subscription())
    assert (why(bed, sent[3]).reason, why(bed, sent[3]).details["through"]) == ("skipped", str(sent[3]))


async def test_passed_by_a_seek(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    sent = await sender.publish(*entries(3))
    await wire.ask(Type.SEEK, consumer_id=0, message_id=message_id(sent[2]))
    assert [why(bed, position).reason for position in sent] == ["passed-by-seek", "passed-by-seek", "no-consumer"]


async def test_before_the_subscription(bed: Bed, wire: Wire, sender: Wire) -> None:
    sent = await sender.publish(*entries(2))
    await wire.subscribe()
    found = why(bed, sent[0])
    assert (found.reason, found.text) == ("before-subscription", f"the subscription begins after it, at {sent[1]}")


async def test_before_the_position_that_a_subscription_was_made_at(bed: Bed, wire: Wire, sender: Wire) -> None:
    sent = await sender.publish(*entries(3))
    rest = rest_of(bed)
    position = {"ledgerId": sent[1].ledger_id, "entryId": 1, "partitionIndex": -1}
    await rest.done("PUT", f"{TOPICS}/t/subscription/sub", position)
    assert why(bed, sent[0]).reason == "before-subscription"
    assert why(bed, sent[1]).reason == "no-consumer"
    await wire.subscribe()
    await wire.flow()
    await wire.ack(sent[1])
    assert why(bed, sent[1]).reason == "acknowledged"


async def test_acknowledged_before_a_restart(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        sent = await wire.publish(*entries(2))
        await wire.ack(sent[0])
    async with serving(data=tmp_path) as bed:
        found = why(bed, sent[0])
        assert found.reason == "topic-not-loaded"
        bed.broker.topics.find(TopicName.parse(TOPIC))
        found = why(bed, sent[0])
        assert (found.reason, found.text) == (
            "passed",
            "the subscription passed it before the topic was loaded; the broker does not remember how",
        )
        assert why(bed, sent[1]).reason == "no-consumer"
        skip_all(bed.subscription())
        assert why(bed, sent[1]).reason == "skipped"


async def test_trimmed_before_a_restart(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        (position,) = await wire.publish(plain(b"0"))
        bed.broker.topics.unload(TopicName.parse(TOPIC))  # begins another ledger
        other = await bed.connect()
        await other.producer()
        await other.subscribe()
        await other.publish(plain(b"1"))
        skip_all(bed.subscription())
        ledgers = bed.topic().ledger.ledgers
        await until(lambda: position.ledger_id not in ledgers)
    async with serving(data=tmp_path) as bed:
        bed.broker.topics.find(TopicName.parse(TOPIC))
        assert position.ledger_id not in bed.topic().ledger.ledgers
        found = why(bed, position)
        assert (found.reason, found.details["trimmed"]) == ("passed", True)


async def test_why_explains_part_of_a_batch(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow()
    (position,) = await sender.publish(batch_of(b"a", b"b", b"c"), num_messages=3)
    await wire.message()
    await wire.ask(
        Type.ACK, consumer_id=0, ack_type=0, message_id=[message_id(position, ack_set=[0b101], batch_size=3)]
    )
    found = why(bed, position, index=1)
    assert (found.reason, found.details["remaining"]) == ("batch-index-acknowledged", [0, 2])
    assert why(bed, position, index=2).reason == "delivered"
    beyond = why(bed, position, index=3)
    assert (beyond.reason, beyond.text) == (
        "no-such-message",
        "there is no such message: the entry has 3, from 0 on",
    )
    assert why(bed, position).details["batchSize"] == 3


async def test_a_message_that_compaction_dropped_is_named(bed: Bed, wire: Wire, sender: Wire) -> None:
    sent = await sender.publish(plain(b"0", partition_key="k"), plain(b"1", partition_key="k"))
    compacted(bed.topic(), Retained(sent[1], {sent[1]: plain(b"1", partition_key="k")}))
    await wire.subscribe(read_compacted=True, initialPosition=Earliest)
    await wire.flow()
    assert await wire.payloads(1) == [b"1"]
    assert why(bed, sent[0]).reason == "compacted-away"


async def test_not_kept_yet() -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        (position,) = await wire.publish(plain(b"0"))
        store.holding = True
        await wire.write(wire.sends(plain(b"1")))
        await wire.alive()
        found = why(bed, Position(position.ledger_id, 1))
        assert (found.reason, found.text) == ("not-confirmed", "it is not stored yet: its commit is on its way")
        store.release()
        assert why(bed, Position(position.ledger_id, 1)).reason == "no-permits"


async def test_no_such_message(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    (position,) = await sender.publish(plain(b"0"))
    found = why(bed, Position(position.ledger_id, 1))
    assert found.reason == "no-such-message"
    assert found.text == f"there is no such message: ledger {position.ledger_id} has 1 entries, from 0 on"
    found = why(bed, Position(999, 0))
    assert found.text == f"there is no such message: the topic has no ledger 999; it has {position.ledger_id}"
    assert why(bed, Position(-1, -1)).reason == "no-such-message"


async def test_a_message_of_a_trimmed_ledger_shows_that_the_ledger_is_gone(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    (position,) = await sender.publish(plain(b"0"))
    bed.broker.topics.unload(TopicName.parse(TOPIC))  # begins another ledger
    other = await bed.connect()
    await other.subscribe()
    skip_all(bed.subscription())
    await other.alive()
    found = why(bed, position)
    assert position.ledger_id not in bed.topic().ledger.ledgers
    assert (found.reason, found.details["trimmed"]) == ("skipped", True)


async def test_a_marker_is_not_for_consumers(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    marker = build(pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, marker_type=21), b"")
    (position,) = await sender.publish(marker)
    assert why(bed, position).reason == "not-for-consumers"


# the next message


async def test_why_names_the_next_message(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", type=Shared, permits=2)
    assert (why(bed).reason, why(bed).text) == ("caught-up", "the topic has no messages")
    sent = await sender.publish(*entries(4))
    await got(wire)
    assert (why(bed).reason, why(bed).details["messageId"]) == ("no-permits", str(sent[2]))
    await wire.redeliver([sent[1]])
    await wire.alive()
    assert why(bed).details["messageId"] == str(sent[1])
    await wire.flow(100)
    await got(wire)
    assert (why(bed).reason, why(bed).details["backlog"]) == ("caught-up", 4)
    (late,) = await sender.publish(plain(b"0", deliver_at_time=bed.broker.clock.now_ms() + 3_600_000))
    assert (why(bed).reason, why(bed).details["messageId"]) == ("delayed", str(late))


async def test_the_next_one_that_was_not_acknowledged_without_being_read(bed: Bed, sender: Wire) -> None:
    await joined(bed, "c", type=Shared, permits=0)
    sent = await sender.publish(*entries(4))
    Skip(bed.subscription(), [SkipEntry(*sent[0]), SkipEntry(*sent[1])]).apply()
    assert why(bed).details["messageId"] == str(sent[2])
    Skip(bed.subscription(), [SkipEntry(*sent[3])]).apply()
    assert why(bed).details["messageId"] == str(sent[2])


@pytest.mark.parametrize("type", [Exclusive, Failover, Shared, KeyShared])
async def test_the_next_message_when_all_consumers_left(bed: Bed, sender: Wire, type: int) -> None:
    wire = await joined(bed, "c", type=type)
    sent = await sender.publish(*entries(2))
    await trio.sleep(2)
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    assert (why(bed).reason, why(bed).details["messageId"]) == ("no-consumer", str(sent[0]))


async def test_the_next_message_behind_those_that_were_skipped(bed: Bed, sender: Wire) -> None:
    await joined(bed, "a", type=Shared, permits=0)
    wire = await joined(bed, "b", type=Shared)
    sent = await sender.publish(*entries(3))
    await got(wire)
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    skip(bed.subscription(), 1)
    assert (why(bed).reason, why(bed).details["messageId"]) == ("no-permits", str(sent[1]))


async def test_the_next_delayed_one_behind_one_that_was_skipped(bed: Bed, sender: Wire) -> None:
    await joined(bed, "c", type=Shared)
    due = bed.broker.clock.now_ms() + 3_600_000
    sent = [(await sender.publish(plain(b"0", deliver_at_time=due + number * 10_000)))[0] for number in range(2)]
    skip(bed.subscription(), 1)
    assert (why(bed).reason, why(bed).details["messageId"]) == ("delayed", str(sent[1]))
    skip(bed.subscription(), 1)
    assert why(bed).reason == "caught-up"


# questions that are refused


async def test_a_missing_topic_or_subscription_is_named(bed: Bed, wire: Wire, sender: Wire) -> None:
    lab = bed.broker.cluster.attached(Lab)
    await wire.subscribe()
    await wire.producer("non-persistent://public/default/np")
    bed.broker.topics.create_partitions(TopicName.parse("parts"), 3)
    for topic, name, asked, error, text in (
        ("other", "sub", None, NotThere, "there is no topic persistent://public/default/other"),
        (TOPIC, "other", None, NotThere, f"{TOPIC} has no subscription other; there are: sub"),
        (TOPIC, "sub", "1", WhyError, "'1' is no message id; write LEDGER:ENTRY"),
        (TOPIC, "sub", f"{2**63}:1", WhyError, "is no message id"),
        ("non-persistent://public/default/np", "sub", None, WhyError, "stores no messages"),
        ("parts", "sub", "99:1", WhyError, "that is loaded has ledger 99; name one of its 3 partitions"),
        ("parts", "sub", None, NotThere, "parts that is loaded has a subscription sub; there are: none"),
        ("parts", "sub", "(0,0,1,-1)", NotThere, "parts-partition-1 has no subscription sub; there are: none"),
        ("a/b/c/d/e", "sub", None, WhyError, "topic name"),
    ):
        with pytest.raises(error) as raised:
            lab.why(topic, name, asked)
        assert text.lower() in str(raised.value).lower()


@pytest.mark.parametrize("form", ["{0}:{1}", "{0}:{1}:-1:-1", "({0},{1},-1,-1)", "({0}, {1}, -1, -1)"])
async def test_forms_of_an_id(bed: Bed, wire: Wire, sender: Wire, form: str) -> None:
    lab = bed.broker.cluster.attached(Lab)
    await wire.subscribe()
    (position,) = await sender.publish(plain(b"0"))
    found: Any = lab.why(TOPIC, "sub", form.format(*position))
    assert (found.reason, found.details["messageId"]) == ("no-permits", str(position))
