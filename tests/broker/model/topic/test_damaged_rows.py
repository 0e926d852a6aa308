"""Damaged rows stop only readers of their entries, and with autoSkipNonRecoverableData not even these."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.config.keys import APPEND_BROKER_TIMESTAMP, APPEND_INDEX
from pulsarium.broker.model.ledger.interceptors import index_of
from pulsarium.broker.model.ledger.position import NOT_STORED
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.damaged import flip
from tests.broker.loopback import until
from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.wire import TOPIC, Bed, Earliest, Shared, plain, serving

COUNT = 6
OLD = 4  # so many of them are old, and the others are published in the future
FUTURE = 10**14


def entries() -> list[bytes]:
    """Return the entries: the first one is of producer a, and all others are of producer b."""
    return [
        plain(
            b"%d" % number,
            sequence_id=number,
            producer_name="b" if number else "a",
            partition_key=f"{number}",
            publish_time=0 if number < OLD else FUTURE,
        )
        for number in range(COUNT)
    ]


@asynccontextmanager
async def damaged(
    data: Path, *rows: int, skip: bool, acked: int = 0, num_messages: int = 1, **config: Any
) -> AsyncIterator[Bed]:
    """Start a broker again on a topic in which some rows are damaged."""
    durable = {key: value for key, value in config.items() if key != "ttlDurationDefaultInSeconds"}
    async with serving(Config(**durable), data=data) as bed:
        wire = await bed.connect()
        for producer_id, name in enumerate("ab"):
            await wire.producer(producer_id=producer_id, producer_name=name)
        await wire.subscribe(type=Shared)
        for number, entry in enumerate(entries()):  # each message is a row, and all rows are one block after the start
            (position,) = await wire.publish(entry, producer_id=min(number, 1), num_messages=num_messages)
            if number < acked:
                await wire.ack(position)
        await wire.alive()
    for row in rows:
        flip(data, row)
    async with serving(Config(autoSkipNonRecoverableData=skip, **config), data=data) as bed:
        yield bed


# deduplication


@pytest.mark.parametrize(("row", "known"), [(0, {"a": -1, "b": 5}), (2, {"a": 0, "b": 5}), (5, {"a": 0, "b": 4})])
async def test_deduplication_forgets_what_is_damaged_and_nothing_else(
    tmp_path: Path, row: int, known: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    async with damaged(tmp_path, row, skip=True, brokerDeduplicationEnabled=True) as bed:
        wire = await bed.connect()
        for producer_id, name in enumerate("ab"):
            made = await wire.producer(producer_id=producer_id, producer_name=name)
            assert made.last_sequence_id == known[name]
        assert "duplicates of damaged entries will not be detected" in caplog.text
        last = entries()[known["b"]]
        await wire.send(
            pb.BaseCommand.SEND, last, producer_id=1, sequence_id=known["b"], num_messages=1, highest_sequence_id=0
        )
        receipt = await wire.expect(pb.BaseCommand.SEND_RECEIPT)
        assert (receipt.message_id.ledgerId, receipt.message_id.entryId) == NOT_STORED


async def test_without_the_key_a_topic_that_cannot_tell_duplicates_is_refused_and_says_what_helps(
    tmp_path: Path,
) -> None:
    async with damaged(tmp_path, 2, skip=False, brokerDeduplicationEnabled=True) as bed:
        wire = await bed.connect()
        code, text = await wire.refused(pb.BaseCommand.PRODUCER, topic=TOPIC, producer_id=0)
        assert code == pb.PersistenceError
        assert "damaged entries from 2 on" in text
        assert "autoSkipNonRecoverableData=true" in text
        bed.broker.cluster.dynamic.put("autoSkipNonRecoverableData", "true")
        made = await wire.producer(producer_name="b")
        assert made.last_sequence_id == COUNT - 1


# message indexes


@pytest.mark.parametrize(
    ("rows", "num_messages", "index", "skip"),
    [([5], 1, 6, False), ([4, 5], 1, 6, True), ([5], 3, 16, True), ([2], 1, 6, False), (range(COUNT), 1, 6, True)],
)
async def test_indexes_go_on_rising_behind_damaged_entries(
    tmp_path: Path, rows: Sequence[int], num_messages: int, index: int, skip: bool
) -> None:
    config: dict[str, Any] = {"brokerEntryMetadataInterceptors": APPEND_INDEX}
    async with damaged(tmp_path, *rows, skip=skip, num_messages=num_messages, **config) as bed:
        wire = await bed.connect()
        await wire.producer()
        (position,) = await wire.publish(plain(b"new"))
        assert index_of(bed.topic().ledger.read_now(position)) == index


async def test_stamps_of_time_need_no_entry(tmp_path: Path) -> None:
    async with damaged(tmp_path, 5, skip=False, brokerEntryMetadataInterceptors=APPEND_BROKER_TIMESTAMP) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.publish(plain(b"new"))


# searches by time


@pytest.mark.parametrize(
    ("row", "acked", "skip", "mark"),
    [
        (0, 0, True, 3),  # the first entry
        (3, 0, True, 2),  # the entry that the search should find
        (5, 0, True, 3),  # the last entry
        (1, 1, False, 3),  # the oldest unacknowledged entry, which the search does not need
        (0, 0, False, -1),
        (5, 0, False, -1),
    ],
)
async def test_messages_expire_as_far_as_anybody_can_tell(
    tmp_path: Path, row: int, acked: int, skip: bool, mark: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with damaged(tmp_path, row, skip=skip, acked=acked, ttlDurationDefaultInSeconds=1) as bed:
        wire = await bed.connect()
        await wire.producer()
        assert bed.subscription().cursor.mark_delete.entry_id == mark
        assert ("nothing expires" in caplog.text) == (mark < 0)


@pytest.mark.parametrize(("name", "reader"), [("sub", False), ("new", False), ("new", True)])
async def test_damage_at_a_subscribe_by_age_fails_only_that_subscribe(tmp_path: Path, name: str, reader: bool) -> None:
    async with damaged(tmp_path, 5, skip=False) as bed:
        wire = await bed.connect()
        await wire.producer()
        code, text = await wire.refused(
            pb.BaseCommand.SUBSCRIBE,
            topic=TOPIC,
            subscription=f"{name} {reader}" if reader else name,
            subType=Shared,
            durable=not reader,
            consumer_id=0,
            start_message_rollback_duration_sec=60,
        )
        assert code == pb.PersistenceError
        assert "damaged entries from 5 on" in text
        await wire.publish(plain(b"all the same"))


async def test_searches_by_time_go_past_damaged_entries(tmp_path: Path) -> None:
    async with damaged(tmp_path, 5, skip=True) as bed:
        wire, rest = await bed.connect(), Rest(bed.broker)
        await wire.subscribe(type=Shared)
        await wire.ask(pb.BaseCommand.SEEK, consumer_id=0, message_publish_time=5)
        cursor = bed.subscription().cursor
        await until(lambda: cursor.mark_delete.entry_id == OLD - 1)
        found = await rest.call("GET", f"{TOPICS}/t/messageid/5")
        assert (found.status, found.json["entryId"]) == (200, OLD)
        bed.broker.cluster.dynamic.put("autoSkipNonRecoverableData", "false")
        assert (await rest.call("GET", f"{TOPICS}/t/messageid/5")).status == 500


# stats and compaction


async def test_stats_do_without_damaged_entries(tmp_path: Path) -> None:
    async with damaged(tmp_path, 0, skip=False) as bed:
        await (await bed.connect()).producer()
        answer = await Rest(bed.broker).call("GET", f"{TOPICS}/t/stats?getEarliestTimeInBacklog=true")
        assert answer.status == 200
        assert answer.json["subscriptions"]["sub"]["earliestMsgPublishTimeInBacklog"] == 0


async def test_compaction_goes_past_damaged_entries(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with damaged(tmp_path, 2, skip=True) as bed:
        wire, rest = await bed.connect(), Rest(bed.broker)
        await wire.producer()
        assert (await rest.call("PUT", f"{TOPICS}/t/compaction")).status == 204
        compaction = bed.topic().compaction
        await until(lambda: compaction.status != "RUNNING")
        assert compaction.status == "SUCCESS"
        assert "damaged entries are not compacted" in caplog.text
        await wire.subscribe(name="reader", read_compacted=True, initialPosition=Earliest)
        await wire.flow()
        assert await wire.payloads(COUNT - 1) == [b"0", b"1", b"3", b"4", b"5"]
