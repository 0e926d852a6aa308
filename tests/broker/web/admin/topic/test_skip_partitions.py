"""skipByMessageIds of a partitioned topic, and of one partition."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.skip import SkipEntry
from pulsarium.broker.web.admin.topic import skip_by_message_ids
from pulsarium.broker.web.admin.topic.skip_by_message_ids import skip_entries
from pulsarium.proto.message_id import MessageId
from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.web.admin.skipped import encoded, format_1, posted, send_batch, skip, triplet
from tests.broker.wire import Bed, Exclusive, Shared, Wire, plain

PARENT = f"{TOPICS}/parted/subscription/sub/skipByMessageIds"
PARTITION_0 = f"{TOPICS}/parted-partition-0/subscription/sub/skipByMessageIds"
COUNT = 3


def name_of(partition: int) -> str:
    return f"persistent://public/default/parted-partition-{partition}"


def backlogs(bed: Bed) -> list[int]:
    return [bed.topic(name_of(n)).subscriptions["sub"].cursor.backlog() for n in range(COUNT)]


@pytest.fixture
async def sent(wire: Wire, rest: Rest) -> list[list[Position]]:
    """Publish two messages on each partition, for one Shared consumer each."""
    await rest.done("PUT", f"{TOPICS}/parted/partitions", COUNT)
    found = []
    for n in range(COUNT):
        await wire.subscribe(topic=name_of(n), type=Shared, consumer_id=n)
        await wire.producer(topic=name_of(n), producer_id=n)
        found.append(await wire.publish(plain(b"0"), plain(b"1"), producer_id=n))
    return found


@pytest.mark.req("S423-55")
async def test_ids_find_their_partition_by_their_ledger(
    bed: Bed, wire: Wire, rest: Rest, sent: list[list[Position]]
) -> None:
    await skip(rest, sent[2][0], url=PARENT)
    assert backlogs(bed) == [2, 2, 1]
    await skip(rest, sent[0][1], sent[2][1], url=PARENT)
    assert backlogs(bed) == [1, 2, 0]
    for n in range(COUNT):
        await wire.flow(consumer_id=n)
    found = [(message.consumer_id, message.position) for message in await wire.messages(3)]
    assert sorted(found) == [(0, sent[0][0]), (1, sent[1][0]), (1, sent[1][1])]


@pytest.mark.req("S423-56")
async def test_a_partition_is_skipped_by_its_name(bed: Bed, rest: Rest, sent: list[list[Position]]) -> None:
    await skip(rest, *(positions[0] for positions in sent), url=PARTITION_0)
    assert backlogs(bed) == [1, 2, 2]


@pytest.mark.req("S423-10")
async def test_an_id_may_name_its_partition(bed: Bed, rest: Rest, sent: list[list[Position]]) -> None:
    wrong = [encoded(sent[0][0], partition=1)]
    assert (await posted(rest, wrong, PARTITION_0)).status == 204
    assert backlogs(bed) == [2, 2, 2]
    assert (await posted(rest, [encoded(sent[0][0], partition=0)], PARTITION_0)).status == 204
    assert backlogs(bed) == [1, 2, 2]
    assert (await posted(rest, [encoded(sent[1][0], partition=1)], PARENT)).status == 204
    assert backlogs(bed) == [1, 1, 2]


async def test_messages_of_batches_are_skipped_in_their_partition(
    bed: Bed, wire: Wire, rest: Rest, sent: list[list[Position]]
) -> None:
    wire.sequences[0] = wire.sequences[1]
    batch = await send_batch(wire)
    await skip(rest, triplet(batch, 1), sent[1][0], url=PARENT)
    cursor = bed.topic(name_of(0)).subscriptions["sub"].cursor
    assert cursor.batch_acks.words(batch) == [0b11101]
    assert backlogs(bed) == [3, 1, 2]


@pytest.mark.req("S423-36")
async def test_no_partition_skips_when_one_refuses(bed: Bed, rest: Rest, sent: list[list[Position]]) -> None:
    for wrong in (triplet(sent[2][0], 1), triplet(Position(sent[2][0].ledger_id, 99))):
        answer = await posted(rest, format_1([triplet(sent[0][0]), wrong]), PARENT)
        assert answer.status == 400
        assert backlogs(bed) == [2, 2, 2]


@pytest.mark.req("S423-27", "S423-28")
async def test_every_partition_needs_a_subscription_that_can_be_skipped(
    bed: Bed, wire: Wire, rest: Rest, sent: list[list[Position]]
) -> None:
    url = PARENT.replace("/sub/", "/other/")
    text = "Subscription other not found for topic persistent://public/default/parted"
    assert await rest.refused("POST", url, format_1([triplet(sent[0][0])])) == (404, text)
    for n in range(COUNT):
        await wire.subscribe(topic=name_of(n), name="other", type=Exclusive if n == 2 else Shared, consumer_id=10 + n)
    refused = (405, "Unsupported subscription type.")
    assert await rest.refused("POST", url, format_1([triplet(sent[0][0])])) == refused
    assert bed.topic(name_of(0)).subscriptions["other"].cursor.backlog() == 0


async def test_ids_are_looked_at_where_their_ledger_is(
    bed: Bed, rest: Rest, sent: list[list[Position]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work grows with ids plus partitions, not with ids times partitions."""
    looked_at: list[int] = []

    def counted(ids: Sequence[MessageId], partition: int) -> list[SkipEntry]:
        looked_at.append(len(ids))
        return skip_entries(ids, partition)

    monkeypatch.setattr(skip_by_message_ids, "skip_entries", counted)
    await skip(rest, *sent[0], *[Position(10**9 + number, 0) for number in range(100)], url=PARENT)
    assert backlogs(bed) == [0, 2, 2]
    assert max(looked_at) == 2
