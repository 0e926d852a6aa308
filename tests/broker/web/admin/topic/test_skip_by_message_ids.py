"""PIP-423 over REST: no consumer gets a skipped message, and all other messages stay as they were."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.web.http.registry import Route
from pulsarium.broker.web.routes import all_routes
from pulsarium.proto.commands import COMMANDS
from tests.broker.model.dispatch.sharing import got, joined, payloads
from tests.broker.model.upkeep.policed import fresh, patient
from tests.broker.web.admin.rest import TOPICS, Rest, rest_of
from tests.broker.web.admin.skipped import SKIP, backlog, encoded, format_1, posted, send_batch, skip, triplet
from tests.broker.wire import Bed, Earliest, KeyShared, Message, Shared, Type, Wire, message_id, plain

SHARING = pytest.mark.parametrize("type", [Shared, KeyShared])


@pytest.fixture
async def sent(wire: Wire, sender: Wire) -> list[Position]:
    """Publish five messages with their numbers as payloads, for a Shared consumer without permits."""
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    return await sender.publish(*[plain(b"%d" % number, partition_key=str(number)) for number in range(5)])


# whole entries


@pytest.mark.req("S423-01", "S423-39", "SREV-01", "SREV-10")
async def test_one_message_is_gone_and_its_neighbours_are_not(wire: Wire, rest: Rest, sent: list[Position]) -> None:
    answer = await posted(rest, format_1([triplet(sent[2])]))
    assert (answer.status, answer.body) == (204, b"")
    await wire.flow()
    assert await wire.payloads(4) == [b"0", b"1", b"3", b"4"]
    await wire.quiet()


@pytest.mark.req("S423-30", "S423-31", "S423-37", "S423-38")
@SHARING
async def test_no_consumer_of_that_subscription_gets_it(bed: Bed, sender: Wire, rest: Rest, type: int) -> None:
    consumers = [await joined(bed, f"c{number}", permits=0, type=type) for number in range(3)]
    other = await bed.connect()
    await other.subscribe(name="other", type=type)
    sent = await sender.publish(*[plain(b"%d" % number, partition_key=str(number)) for number in range(5)])
    await skip(rest, sent[2])
    for wire in consumers:
        await wire.flow()
    assert sorted([payload for wire in consumers for payload in await payloads(wire)]) == [b"0", b"1", b"3", b"4"]
    await other.flow()
    assert await other.payloads(5) == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.req("S423-33")
async def test_messages_are_skipped_before_any_consumer_came(bed: Bed, sender: Wire, rest: Rest) -> None:
    """The subscription has no type yet (X-08)."""
    await rest.done("PUT", f"{TOPICS}/t/subscription/sub", "earliest")
    first, second = await sender.publish(plain(b"0"), plain(b"1"))
    batch = await send_batch(sender)
    await skip(rest, first, triplet(batch, 2))
    wire = await joined(bed, "c", type=Shared)
    messages = await wire.messages(2)
    assert [message.position for message in messages] == [second, batch]
    assert list(messages[1].command.ack_set) == [0b11011]


@pytest.mark.req("S423-07", "S423-11", "S423-21")
async def test_every_form_of_the_body_skips(rest: Rest, sent: list[Position]) -> None:
    ids = [encoded(position) for position in sent]
    before = await backlog(rest)
    assert (await posted(rest, ["CLlgEAQwAA==", "CLlgEAYwAA=="])).status == 204  # ids of a ledger that does not exist
    assert await backlog(rest) == before
    bodies: list[Any] = [
        [ids[0]],
        {"type": "byteArray", "messageIds": [ids[1]]},
        {"messageIds": [ids[2]]},
        {"type": "BYTEarray", "messageIds": [ids[3]]},
        format_1([None, triplet(sent[4])]),
    ]
    for count, body in enumerate(bodies, 1):
        answer = await posted(rest, body)
        assert (answer.status, answer.body) == (204, b""), body
        assert await backlog(rest) == before - count


@pytest.mark.req("S423-50")
async def test_skipping_again_changes_nothing(
    bed: Bed, wire: Wire, rest: Rest, sent: list[Position], sender: Wire
) -> None:
    batch = await send_batch(sender)
    for _ in range(2):
        await skip(rest, sent[0], sent[2], triplet(batch, 1))
        cursor = bed.subscription().cursor
        assert (cursor.mark_delete, cursor.backlog(), cursor.batch_acks.words(batch)) == (sent[0], 4, [0b11101])
    await skip(rest, *sent, batch)
    await skip(rest, sent[3], triplet(batch, 99))  # a batch index of an acknowledged entry is not checked
    assert await backlog(rest) == 0


# consumers that have the message already


@pytest.mark.req("S423-52")
@SHARING
async def test_a_skipped_message_that_a_consumer_has_is_not_redelivered(
    bed: Bed, sender: Wire, rest: Rest, type: int
) -> None:
    wire = await joined(bed, "c", type=type)
    sent = await sender.publish(*[plain(b"%d" % number, partition_key="k") for number in range(4)])
    await wire.messages(4)
    await skip(rest, sent[0], sent[1])
    (consumer,) = bed.subscription().consumers
    assert (consumer.unacked, list(consumer.pending)) == (2, sent[2:])
    await wire.redeliver([sent[0], sent[2]])
    again = await got(wire)
    assert [message.position for message in again] == [sent[2]]
    await wire.aclose()
    other = await joined(bed, "d", type=type)
    assert await payloads(other) == [b"2", b"3"]


@SHARING
async def test_a_skipped_message_that_waits_for_redelivery_is_not_redelivered(
    bed: Bed, sender: Wire, rest: Rest, type: int
) -> None:
    wire = await joined(bed, "c", type=type, permits=3)
    sent = await sender.publish(*[plain(b"%d" % number, partition_key="k") for number in range(3)])
    await wire.messages(3)
    await wire.redeliver(sent[:2])
    await wire.alive()
    await skip(rest, sent[0])
    await wire.flow()
    assert [(message.position, message.redelivery_count) for message in await got(wire)] == [(sent[1], 1)]


async def test_consumers_that_owe_less_are_given_more(sender: Wire, rest: Rest) -> None:
    async with patient(maxUnackedMessagesPerConsumer=2) as bed:
        rest, sender = rest_of(bed), await bed.connect()
        await sender.producer()
        wire = await joined(bed, "c", type=Shared)
        sent = await sender.publish(*[plain(b"%d" % number) for number in range(3)])
        assert await payloads(wire) == [b"0", b"1"]
        await skip(rest, sent[0])
        assert await payloads(wire) == [b"2"]


# the topic, the protocol and other calls


@pytest.mark.req("S423-60", "SREV-12")
async def test_nothing_is_written_to_the_topic(bed: Bed, rest: Rest, sent: list[Position]) -> None:
    before = bed.topic().ledger.count
    await skip(rest, sent[1], sent[0])
    assert bed.topic().ledger.count == before == 5


@pytest.mark.req("S423-61")
def test_no_command_of_the_protocol_is_for_it() -> None:
    """The highest protocol version is that of PIP-429 (X-18)."""
    assert not [spec.name for spec in COMMANDS.values() if "SKIP" in spec.name]


@pytest.mark.req("S423-59", "SREV-02", "SREV-04", "SREV-05")
async def test_skipping_by_count_takes_no_ids(bed: Bed, rest: Rest, sent: list[Position]) -> None:
    by_count = f"{TOPICS}/t/subscription/sub/skip"
    ids = {str(sent[3].ledger_id): str(sent[3].entry_id)}
    await rest.done("POST", f"{by_count}/0")
    await rest.done("POST", f"{by_count}/0", ids)
    await rest.done("POST", f"{by_count}/0", format_1([triplet(sent[3])]))
    assert await backlog(rest) == 5
    await rest.done("POST", f"{by_count}/1", format_1([triplet(sent[3])]))
    cursor = bed.subscription().cursor
    assert (cursor.mark_delete, cursor.backlog()) == (sent[0], 4)
    await rest.done("POST", f"{by_count}/2")
    assert (cursor.mark_delete, cursor.backlog()) == (sent[2], 2)


@pytest.mark.req("S423-02", "SREV-10")
async def test_skipping_takes_only_post_and_needs_what_skip_needs(rest: Rest, sent: list[Position]) -> None:
    for method in ("GET", "PUT", "DELETE"):
        assert (await rest.call(method, SKIP)).status == 405
    path = "/admin/v2/persistent/{tenant}/{namespace}/{topic}/subscription/{subscription}/skipByMessageIds"
    found = [route for route, _ in all_routes() if "skipByMessageIds" in route.path]
    assert [(route, route.needs) for route in found] == [(Route("POST", path), topic_operation("SKIP"))]


@pytest.mark.req("S423-27")
async def test_the_subscription_is_the_one_that_the_path_encodes(
    bed: Bed, wire: Wire, sender: Wire, rest: Rest
) -> None:
    await wire.subscribe(name="a/b c", type=Shared)
    (position,) = await sender.publish(plain(b"0"))
    await skip(rest, position, url=f"{TOPICS}/t/subscription/a%2Fb+c/skipByMessageIds")
    assert bed.subscription("a/b c").cursor.backlog() == 0


async def test_a_terminated_topic_ends_when_its_last_message_is_skipped(wire: Wire, sender: Wire, rest: Rest) -> None:
    await wire.subscribe(type=Shared)
    (position,) = await sender.publish(plain(b"0"))
    assert (await rest.call("POST", f"{TOPICS}/t/terminate")).status == 200
    await wire.quiet()
    await skip(rest, position)
    await wire.expect(Type.REACHED_END_OF_TOPIC)


# single messages of batches (PIP-54)


def left_of(message: Message) -> list[int]:
    return list(message.command.ack_set)


@pytest.mark.req("S423-04", "S423-05", "S423-06", "S423-09", "SREV-08")
async def test_whole_batches_and_single_messages_of_others(wire: Wire, sender: Wire, rest: Rest) -> None:
    await wire.subscribe(type=Shared)
    batches = [await send_batch(sender) for _ in range(4)]
    await skip(rest, batches[0], triplet(batches[1], 2))
    assert (await posted(rest, [encoded(batches[2], batch_index=1, batch_size=5)])).status == 204
    await wire.flow()
    found = [(message.position, left_of(message)) for message in await wire.messages(3)]
    assert found == [(batches[1], [0b11011]), (batches[2], [0b11101]), (batches[3], [])]
    await wire.quiet()


@pytest.mark.req("S423-46", "S423-47")
async def test_several_messages_of_a_batch_and_then_all(wire: Wire, sender: Wire, rest: Rest) -> None:
    await wire.subscribe(type=Shared)
    batch = await send_batch(sender)
    await skip(rest, triplet(batch, 1), triplet(batch, 3))
    await wire.flow()
    assert left_of(await wire.message()) == [0b10101]
    assert await backlog(rest) == 1
    await skip(rest, *[triplet(batch, index) for index in range(5)])
    assert await backlog(rest) == 0
    await wire.redeliver()
    await wire.quiet()


@pytest.mark.req("S423-51")
async def test_a_skip_joins_what_a_consumer_acknowledged(bed: Bed, wire: Wire, sender: Wire, rest: Rest) -> None:
    await wire.subscribe(type=Shared)
    batch = await send_batch(sender)
    await wire.flow()
    await wire.message()
    await wire.ack(message_id=[message_id(batch, ack_set=[0b11110])])
    await skip(rest, triplet(batch, 1))
    (consumer,) = bed.subscription().consumers
    assert consumer.unacked == 3
    await wire.redeliver()
    assert left_of(await wire.message()) == [28]


async def test_messages_of_a_batch_of_many_words_are_skipped(bed: Bed, wire: Wire, sender: Wire, rest: Rest) -> None:
    await wire.subscribe(type=Shared)
    batch = await send_batch(sender, size=130)
    await skip(rest, *[triplet(batch, index) for index in range(130) if index not in (0, 63, 64, 129)])
    await wire.flow()
    assert left_of(await wire.message()) == [-(2**63) + 1, 1, 2]


# delayed messages


@pytest.mark.req("S423-40", "S423-41", "S423-42")
@pytest.mark.parametrize("type", [Shared, KeyShared])
async def test_a_delayed_message_is_cancelled(autojump_clock: object, type: int) -> None:
    async with patient() as bed:
        rest, sender = rest_of(bed), await bed.connect()
        await sender.producer()
        wire = await joined(bed, "c", type=type)
        later = bed.broker.clock.now_ms() + 3_600_000
        now, cancelled, other = await sender.publish(
            fresh(bed.broker, b"now"),
            fresh(bed.broker, b"cancelled", deliver_at_time=later),
            fresh(bed.broker, b"other", deliver_at_time=later),
        )
        assert await payloads(wire) == [b"now"]
        assert await backlog(rest) == 3
        await skip(rest, cancelled)
        assert await backlog(rest) == 2
        await wire.quiet(3000)
        assert (await wire.message(7200)).payload == b"other"
        await wire.quiet(7200)
        await wire.ack(now, other)
        assert await backlog(rest) == 0


@pytest.mark.req("S423-40")
async def test_delayed_messages_are_cancelled_before_a_consumer_comes(autojump_clock: object) -> None:
    async with patient() as bed:
        rest, sender = rest_of(bed), await bed.connect()
        await sender.producer()
        await rest.done("PUT", f"{TOPICS}/t/subscription/sub", "earliest")
        later = bed.broker.clock.now_ms() + 3_600_000
        (cancelled,) = await sender.publish(fresh(bed.broker, b"cancelled", deliver_at_time=later))
        await skip(rest, cancelled)
        wire = await joined(bed, "c", type=Shared)
        await wire.quiet(7200)
