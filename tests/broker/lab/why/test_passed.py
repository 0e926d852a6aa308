"""Explanations of an empty backlog, and of one that consumers hold: what moved the mark-delete position."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.broker.model.subscription.skip import skip, skip_all
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.lab.why.asking import entries, why
from tests.broker.model.dispatch.sharing import got, joined
from tests.broker.model.upkeep.policed import fresh, set_policies
from tests.broker.wire import TOPIC, Bed, Exclusive, Failover, KeyShared, Latest, Shared, Type, Wire, plain, serving


async def test_everything_was_acknowledged(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", type=Shared)
    sent = await sender.publish(*entries(3))
    await got(wire)
    for position in sent:
        await wire.ack(position)
    found = why(bed)
    assert (found.reason, found.text, found.details["moves"]) == ("caught-up", "everything was acknowledged", [])
    assert (found.details["last"], found.details["lastReason"]) == (str(sent[2]), "acknowledged")


async def test_a_subscription_made_after_the_last_message_waits_for_the_next_one(bed: Bed, sender: Wire) -> None:
    (position,) = await sender.publish(plain(b"0"))
    await joined(bed, "c", initialPosition=Latest)
    found = why(bed)
    assert (found.reason, found.details["lastReason"]) == ("caught-up", "before-subscription")
    assert (
        found.text == f"nothing waits; the last message is {position}: the subscription begins after it, at {position}"
    )


async def test_a_seek_past_everything_is_named(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", permits=0)
    sent = await sender.publish(*entries(2))
    await wire.ask(Type.SEEK, consumer_id=0, message_id=pb.MessageIdData(ledgerId=2**63 - 1, entryId=2**63 - 1))
    found = why(bed)
    assert found.details["lastReason"] == "passed-by-seek"
    assert found.text.startswith(
        f"nothing waits; the last message is {sent[1]}: a seek or a reset of the cursor went past it, "
        f"through {sent[1]}, at 20"
    )
    assert "acknowledged" not in found.text


async def test_messages_that_all_expired_are_named(bed: Bed, sender: Wire) -> None:
    await joined(bed, "c", permits=0)
    (position,) = await sender.publish(fresh(bed.broker, b"0", age=100))
    set_policies(bed.broker, message_ttl_in_seconds=60)
    bed.topic().check_ttl()
    found = why(bed)
    assert (found.details["lastReason"], found.details["moves"][0]["through"]) == ("expired", str(position))
    assert "TTL or a request to expire messages went past it" in found.text
    assert "acknowledged" not in found.text


async def test_acknowledgements_behind_skipped_messages_do_not_hide_that_some_were_skipped(
    bed: Bed, sender: Wire
) -> None:
    wire = await joined(bed, "c", type=Shared)
    sent = await sender.publish(*entries(3))
    skip(bed.subscription(), 2)
    await got(wire)
    await wire.ack(sent[2])
    assert why(bed).text.startswith(
        "everything was acknowledged, but for what a request to skip messages, or to clear the backlog "
        f"went past, through {sent[1]}, at 20"
    )


async def test_what_came_before_a_restart_is_not_called_acknowledged(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe(type=Shared)
        (before,) = await wire.publish(plain(b"0"))
        skip_all(bed.subscription())
    async with serving(data=tmp_path) as bed:
        bed.broker.topics.find(TopicName.parse(TOPIC))
        assert why(bed).details["lastReason"] == "passed"
        wire = await joined(bed, "c", type=Shared)
        sender = await bed.connect()
        await sender.producer()
        (after,) = await sender.publish(plain(b"1"))
        await wire.message()
        await wire.ack(after)
        await wire.alive()
        text = f"everything after {before} was acknowledged; how the rest was passed is not remembered"
        assert why(bed).text == text


@pytest.mark.parametrize("type", [Exclusive, Failover, Shared, KeyShared])
async def test_the_consumer_that_holds_everything_is_named(bed: Bed, sender: Wire, type: int) -> None:
    wire = await joined(bed, "slow", type=type)
    await wire.rest(2)  # the failover delay
    sent = await sender.publish(*entries(2))
    await wire.messages(2)
    found = why(bed)
    assert (found.reason, found.details["firstUnacknowledged"]) == ("caught-up", str(sent[0]))
    assert found.text.startswith(
        f"everything was delivered, and {sent[0]} is not acknowledged: slow has it and has not acknowledged it"
    )
    assert found.details["heldBy"] == {"slow": 2}
