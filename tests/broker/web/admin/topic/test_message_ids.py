"""Message ids over REST: by index, by time, and the last one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Any
from urllib.parse import quote

import pytest
import trio

from pulsarium.broker.config import PIP, PULSAR_4_2, Config, Profile
from pulsarium.broker.config.keys import APPEND_BROKER_TIMESTAMP, APPEND_INDEX
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.storage.interface import Storage
from pulsarium.proto.commands import COMMANDS
from tests.broker.auth.secured import bearer, by_token
from tests.broker.held import HeldStorage
from tests.broker.web.admin.rest import ADMIN, NON_PERSISTENT, TOPICS, give, rest_of
from tests.broker.web.admin.skipped import Secured
from tests.broker.wire import TOPIC, Bed, Type, Wire, batch_of, plain, serving

T = f"{TOPICS}/t"
INDEX = f"{T}/getMessageIdByIndex"
STAMPED: dict[str, Any] = {"brokerEntryMetadataInterceptors": (APPEND_BROKER_TIMESTAMP, APPEND_INDEX)}
EARLIEST_ID = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}
MARKER = plain(b"", marker_type=21)
PROFILES = pytest.mark.parametrize("profile", [PIP, PULSAR_4_2], ids=lambda profile: profile.name)


class Stage:
    """A broker with interceptors, a REST client, and a connection with a producer on the usual topic."""

    def __init__(self, bed: Bed, wire: Wire) -> None:
        self.bed, self.rest, self.wire = bed, rest_of(bed), wire

    async def publish(self, *entries: tuple[bytes, int]) -> list[Position]:
        """Publish entries, each with the number of messages that its SEND names."""
        return [(await self.wire.publish(entry, num_messages=count))[0] for entry, count in entries]

    async def batches(self, *counts: int) -> list[Position]:
        return await self.publish(*[(batch_of(*[b"x"] * count), count) for count in counts])

    async def roll(self) -> None:
        """Close the current ledger, so that the next entries go to a new one."""
        await self.rest.done("PUT", f"{T}/unload")
        await self.wire.expect(Type.CLOSE_PRODUCER)
        await self.wire.producer()

    async def id_of(self, index: int, url: str = INDEX) -> dict[str, int]:
        found: dict[str, int] = await self.rest.get(f"{url}?index={index}")
        return found

    async def ids(self, *indexes: int) -> list[Position]:
        found = [await self.id_of(index) for index in indexes]
        return [Position(each["ledgerId"], each["entryId"]) for each in found]

    async def absent(self, index: int) -> None:
        refusal = await self.rest.refused("GET", f"{INDEX}?index={index}")
        assert refusal == (404, f"Message not found for index {index}")


@asynccontextmanager
async def staged(profile: Profile = PIP, storage: Storage | None = None, **config: Any) -> AsyncIterator[Stage]:
    async with serving(Config(**(STAMPED | config)), profile=profile, storage=storage) as bed:
        wire = await bed.connect()
        await wire.producer()
        yield Stage(bed, wire)


@pytest.fixture
async def stage(bed: Bed) -> AsyncIterator[Stage]:  # `bed` is only for its clock, which jumps
    async with staged() as made:
        yield made


# by index


@pytest.mark.req("S415-01", "S415-03", "S415-04", "S415-06", "S415-07", "S415-08", "S415-09", "S415-27")
async def test_each_index_of_the_proposals_example_finds_its_batch(stage: Stage) -> None:
    first, second = await stage.batches(3, 2)
    a, b = ({"ledgerId": ledger, "entryId": entry, "partitionIndex": -1} for ledger, entry in (first, second))
    assert [await stage.id_of(index) for index in range(5)] == [a, a, a, b, b]
    await stage.absent(5)
    await stage.absent(2**63 - 1)
    assert (await stage.rest.call("GET", f"{INDEX}?index=1&authoritative=true")).json == a


@pytest.mark.req("S415-03")
async def test_as_released_the_first_batch_has_only_its_last_index(bed: Bed) -> None:
    async with staged(PULSAR_4_2) as stage:
        (first,) = await stage.batches(3)
        nowhere = {**EARLIEST_ID, "batchSize": 0, "batchIndex": -1}
        assert [await stage.id_of(index) for index in range(2)] == [nowhere] * 2
        found = {"ledgerId": first.ledger_id, "entryId": 0, "partitionIndex": -1, "batchSize": 0, "batchIndex": -1}
        assert await stage.id_of(2) == found
        await stage.absent(3)


@pytest.mark.req("S415-02")
async def test_the_topic_of_an_index_is_decoded_once(stage: Stage) -> None:
    for number, name in enumerate(("a%2Fb", "a+b", "a b", "ä"), 1):
        await stage.wire.producer(f"persistent://public/default/{name}", producer_id=number)
        await stage.wire.publish(plain(b"x"), producer_id=number)
        found = await stage.id_of(0, f"{TOPICS}/{quote(name, safe='')}/getMessageIdByIndex")
        assert found["entryId"] == 0
    assert (await stage.rest.refused("GET", f"{TOPICS}/a%2Fb/getMessageIdByIndex?index=0"))[0] == 412  # topic a/b


@pytest.mark.req("S415-05", "S415-19", "S415-32")
async def test_each_partition_counts_its_indexes_for_itself(stage: Stage) -> None:
    await stage.rest.done("PUT", f"{TOPICS}/parts/partitions", 3)
    for partition in (0, 2):
        name = f"persistent://public/default/parts-partition-{partition}"
        await stage.wire.producer(name, producer_id=partition + 1)
        await stage.wire.publish(plain(b"x"), plain(b"y"), producer_id=partition + 1)
        found = [await stage.id_of(n, f"{TOPICS}/parts-partition-{partition}/getMessageIdByIndex") for n in (0, 1)]
        assert [(each["entryId"], each["partitionIndex"]) for each in found] == [(0, partition), (1, partition)]
    refusal = await stage.rest.refused("GET", f"{TOPICS}/parts/getMessageIdByIndex?index=0")
    assert refusal == (405, "GetMessageIDByIndex is not allowed on partitioned-topic")
    name = "persistent://public/default/parts-partition-1"
    refusal = await stage.rest.refused("GET", f"{TOPICS}/parts-partition-1/getMessageIdByIndex?index=0")
    assert refusal == (404, f"No messages found in topic {name}")


@pytest.mark.req("S415-10")
@PROFILES
async def test_a_negative_index_is_invalid(bed: Bed, profile: Profile) -> None:
    async with staged(profile) as stage:
        for url in (INDEX, f"{TOPICS}/absent/getMessageIdByIndex", f"{NON_PERSISTENT}/t/getMessageIdByIndex"):
            assert await stage.rest.refused("GET", f"{url}?index=-1") == (404, "Invalid message index: -1")


@pytest.mark.req("S415-11")
async def test_an_index_is_required(bed: Bed) -> None:
    async with staged() as stage:
        await stage.batches(1)
        for query in ("", "?index=", "?authoritative=true"):
            assert await stage.rest.refused("GET", INDEX + query) == (404, "Invalid message index: null")
    async with staged(PULSAR_4_2) as stage:
        await stage.batches(1)
        assert await stage.rest.get(INDEX) == await stage.rest.get(f"{INDEX}?index=") == await stage.id_of(0)


@pytest.mark.req("S415-12")
@pytest.mark.parametrize("index", ["abc", "1.5", "9223372036854775808", "+2"])
async def test_an_index_that_is_no_number_is_no_path(stage: Stage, index: str) -> None:
    await stage.batches(1, 1, 1)
    answer = await stage.rest.call("GET", f"{INDEX}?index={index}")
    assert (answer.status, answer.json["message"]) == (404, "Not Found")


@pytest.mark.req("S415-13")
@PROFILES
async def test_a_topic_that_never_had_a_message_has_no_index(bed: Bed, profile: Profile) -> None:
    async with staged(profile) as stage:
        refusal = await stage.rest.refused("GET", f"{INDEX}?index=0")
        assert refusal == (404, f"No messages found in topic {TOPIC}")


@pytest.mark.req("S415-18")
@pytest.mark.parametrize(("profile", "absent", "status"), [(PIP, 406, 406), (PULSAR_4_2, 404, 405)])
async def test_non_persistent_topics_have_no_indexes(bed: Bed, profile: Profile, absent: int, status: int) -> None:
    """4.2.4 first asks whether the topic exists."""
    async with staged(profile) as stage:
        url = f"{NON_PERSISTENT}/t/getMessageIdByIndex?index=0"
        text = "Get message id by index on a non-persistent topic is not allowed"
        missing = text if absent == status else "Topic non-persistent://public/default/t not found"
        assert await stage.rest.refused("GET", url) == (absent, missing)
        await stage.wire.producer("non-persistent://public/default/t", producer_id=1)
        assert await stage.rest.refused("GET", url) == (status, text)


@pytest.mark.req("S415-20", "S415-21")
@PROFILES
async def test_without_interceptors_everything_else_does_not_matter(bed: Bed, profile: Profile) -> None:
    async with serving(profile=profile) as stock:
        rest, text = rest_of(stock), "GetMessageIDByIndex is not allowed when broker entry metadata is disabled"
        for name in ("absent", "t"):
            for query in ("?index=-1", "?index=0", ""):
                url = f"{TOPICS}/{name}/getMessageIdByIndex{query}"
                assert await rest.refused("GET", url) == (412, text)
        answer = await rest.call("GET", f"{INDEX}?index=abc")  # no such path, as in Pulsar
        assert answer.status == 404


@pytest.mark.req("S415-21", "S415-23")
@PROFILES
async def test_entries_without_an_index_are_told_so(bed: Bed, profile: Profile) -> None:
    async with staged(profile, brokerEntryMetadataInterceptors=(APPEND_BROKER_TIMESTAMP,)) as stage:
        await stage.batches(1)
        refusal = await stage.rest.refused("GET", f"{INDEX}?index=0")
        assert refusal == (412, "Broker entry metadata is not present in the message")


@pytest.mark.req("S415-23")
@PROFILES
async def test_entries_from_before_the_interceptors_are_passed_over(bed: Bed, profile: Profile) -> None:
    store = HeldStorage()
    async with staged(profile, storage=store, brokerEntryMetadataInterceptors=()) as stage:
        await stage.batches(1)
    async with staged(profile, storage=store) as stage:
        positions = await stage.batches(1, 2)
        if profile is PULSAR_4_2:
            assert (await stage.rest.refused("GET", f"{INDEX}?index=0"))[0] == 412
        else:
            assert await stage.ids(0, 1, 2) == [positions[0], positions[1], positions[1]]
            await stage.absent(3)


@pytest.mark.req("B-52", "S415-22", "S415-06")
async def test_an_entry_has_the_index_of_its_last_message(stage: Stage) -> None:
    for position, index in zip(await stage.batches(3, 2), ("2", "4"), strict=True):
        answer = await stage.rest.call("GET", f"{T}/ledger/{position.ledger_id}/entry/{position.entry_id}")
        assert answer.headers["X-Pulsar-Broker-Entry-METADATA-index"] == index


@pytest.mark.req("S415-24", "S415-25")
async def test_markers_have_no_index_of_their_own(bed: Bed) -> None:
    entries = [(plain(b"a"), 1), (MARKER, 1), (plain(b"b"), 1), (MARKER, 1)]
    async with staged() as stage:
        a, _, b, _ = await stage.publish(*entries)
        assert await stage.ids(0, 1, 2) == [a, b, b]
        await stage.absent(3)
    async with staged(PULSAR_4_2) as stage:
        assert await stage.publish(*entries) == await stage.ids(0, 1, 2, 3)


@pytest.mark.req("S415-26", "S415-31")
async def test_indexes_of_deleted_messages_find_the_earliest_id(stage: Stage) -> None:
    await stage.batches(3, 2)
    await stage.roll()
    kept, last = await stage.batches(4, 1)
    assert await stage.ids(5, 8, 9) == [kept, kept, last]
    await stage.rest.done("DELETE", f"{T}/truncate")
    assert [await stage.id_of(index) for index in (0, 4)] == [EARLIEST_ID] * 2
    assert await stage.ids(5, 8, 9) == [kept, kept, last]
    await stage.absent(10)


@pytest.mark.req("S415-26", "S415-33")
@PROFILES
async def test_indexes_go_on_when_nothing_is_left(bed: Bed, profile: Profile) -> None:
    async with staged(profile) as stage:
        await stage.batches(3)
        await stage.roll()
        await stage.rest.done("DELETE", f"{T}/truncate")
        if profile is PIP:
            assert [await stage.id_of(index) for index in (0, 2)] == [EARLIEST_ID] * 2
            await stage.absent(3)
        else:  # 4.2.4 looks for a deleted ledger
            status, text = await stage.rest.refused("GET", f"{INDEX}?index=0")
            assert status == 500
            assert "Message not found, the ledgerId does not belong to this topic or has been deleted" in text
        (following,) = await stage.batches(1)
        assert await stage.ids(3) == [following]


@pytest.mark.req("S415-33")
async def test_the_index_goes_on_after_a_restart(bed: Bed) -> None:
    store = HeldStorage()
    async with staged(storage=store) as stage:
        before = await stage.batches(2, 3)
    async with staged(storage=store) as stage:
        after = await stage.batches(1)
        assert await stage.ids(1, 4, 5) == [*before, *after]


@pytest.mark.req("S415-35")
async def test_an_entry_and_its_index_find_each_other(stage: Stage) -> None:
    positions = await stage.batches(1, 4)
    await stage.roll()
    positions += await stage.batches(2)
    for ledger, entry in positions:
        answer = await stage.rest.call("GET", f"{T}/ledger/{ledger}/entry/{entry}")
        index = int(answer.headers["X-Pulsar-Broker-Entry-METADATA-index"])
        assert await stage.ids(index) == [(ledger, entry)]


@pytest.mark.req("S415-16", "S415-17")
async def test_an_index_is_asked_of_the_broker_of_the_topic(bed: Bed) -> None:
    async with serving(Config(**STAMPED), brokers=2) as two:
        give(two, 0)
        first, second, wire = rest_of(two, 0), rest_of(two, 1), await two.connect()
        await wire.producer()
        (position,) = await wire.publish(plain(b"x"))
        for query in ("?index=0", "?index=0&authoritative=false"):
            answer = await second.call("GET", INDEX + query)
            location = f"http://broker.internal:8080{INDEX}?index=0&authoritative=false"
            assert (answer.status, answer.headers["location"]) == (307, location)
        assert await second.refused("GET", f"{INDEX}?index=-1") == (404, "Invalid message index: -1")
        assert (await first.get(f"{INDEX}?index=0"))["ledgerId"] == position.ledger_id


@pytest.mark.req("S415-15")
@pytest.mark.parametrize(
    ("role", "status"), [("admin", 200), ("consumer", 200), ("producer", 403), ("nobody", 403), (None, 401)]
)
async def test_a_role_that_may_peek_may_ask_for_an_index(bed: Bed, role: str | None, status: int) -> None:
    async with serving(by_token(**STAMPED)) as secured:
        stage = Secured(secured)
        await stage.fill()
        headers = bearer(role) if role else {}
        answer = await stage.rest.call("GET", f"{INDEX}?index=0", **headers)
        assert answer.status == status
        if status == 403:
            assert "Unauthorized to validateTopicOperation for operation [PEEK_MESSAGES]" in answer.reason
        answer = await stage.rest.call("GET", f"{TOPICS}/absent/getMessageIdByIndex?index=-1", **headers)
        assert answer.status == (404 if role else 401)
        if role:
            assert answer.reason == "Invalid message index: -1"


async def test_indexes_are_found_on_disk_without_reading_all(bed: Bed) -> None:
    store = HeldStorage()
    async with staged(storage=store, managedLedgerCacheSizeMB=0) as stage:
        positions = await stage.batches(*[2] * 20)
        stage.bed.broker.cluster.cache.trim()
        assert await stage.ids(0, 1, 21, 39) == [positions[0], positions[0], positions[10], positions[19]]
        assert 4 * 4 < store.reads < 4 * 9  # far fewer reads than entries


# by time


async def test_a_time_finds_the_first_message_from_then_on(bed: Bed) -> None:
    async with staged(brokerEntryMetadataInterceptors=()) as stage:
        positions = await stage.wire.publish(*[plain(b"x", publish_time=time) for time in (10, 20, 20, 30)])
        found = [await stage.rest.get(f"{T}/messageid/{time}") for time in (1, 10, 11, 20, 21, 30, 31, 2**63 - 1)]
        after = Position(positions[0].ledger_id, 4)
        wanted = [positions[each] for each in (0, 0, 1, 1, 3, 3)] + [after, after]
        assert [Position(each["ledgerId"], each["entryId"]) for each in found] == wanted
        assert found[0] == {
            **EARLIEST_ID,
            "ledgerId": positions[0].ledger_id,
            "entryId": 0,
            "batchSize": 0,
            "batchIndex": -1,
        }


@PROFILES
async def test_a_time_before_all_messages_finds_the_earliest_id(bed: Bed, profile: Profile) -> None:
    nowhere = {**EARLIEST_ID, "batchSize": 0, "batchIndex": -1}
    async with staged(profile) as stage:
        await stage.batches(1)
        assert await stage.rest.get(f"{T}/messageid/0") == nowhere
        if profile is PIP:
            assert await stage.rest.get(f"{T}/messageid/-1") == nowhere
        else:
            status, text = await stage.rest.refused("GET", f"{T}/messageid/-1")
            assert (status, "CompactedTopicContext is not initialized" in text) == (500, True)
        answer = await stage.rest.call("GET", f"{T}/messageid/x")
        assert (answer.status, answer.json["message"]) == (404, "Not Found")


async def test_of_a_compacted_topic_what_compaction_left_is_looked_at(bed: Bed) -> None:
    async with staged(brokerEntryMetadataInterceptors=()) as stage:
        entries = [plain(b"x", publish_time=10 * n, partition_key=key) for n, key in enumerate("aabbc", 1)]
        positions = await stage.wire.publish(*entries)
        await stage.rest.done("PUT", f"{T}/compaction")
        await trio.sleep(1)
        assert (await stage.rest.get(f"{T}/compaction"))["status"] == "SUCCESS"
        (late,) = await stage.wire.publish(plain(b"x", publish_time=60, partition_key="a"))
        found = [await stage.rest.get(f"{T}/messageid/{time}") for time in (0, 10, 20, 21, 41, 51)]
        wanted = [positions[each] for each in (1, 1, 1, 3, 4)] + [late]
        assert [Position(each["ledgerId"], each["entryId"]) for each in found] == wanted


async def test_a_compacted_message_with_a_negative_time_is_the_oldest(bed: Bed) -> None:
    async with staged(brokerEntryMetadataInterceptors=()) as stage:
        times = (-5 % 2**64, 10)
        positions = await stage.wire.publish(*[plain(b"x", publish_time=n, partition_key=str(n)) for n in times])
        await stage.rest.done("PUT", f"{T}/compaction")
        await trio.sleep(1)
        found = [await stage.rest.get(f"{T}/messageid/{time}") for time in (-6, 0)]
        assert [Position(each["ledgerId"], each["entryId"]) for each in found] == positions


# the last


async def test_the_last_message_id_follows_what_is_published(stage: Stage) -> None:
    empty = {
        **EARLIEST_ID,
        "ledgerId": stage.bed.topic().ledger.last_confirmed.ledger_id,
        "batchSize": 0,
        "batchIndex": -1,
    }
    assert await stage.rest.get(f"{T}/lastMessageId") == empty
    (single,) = await stage.publish((plain(b"x"), 1))
    found = {"ledgerId": single.ledger_id, "entryId": 0, "partitionIndex": -1, "batchSize": 0, "batchIndex": -1}
    assert await stage.rest.get(f"{T}/lastMessageId") == found
    await stage.batches(10)
    of_batch = {"batchIndex": 9, "outstandingAcksInSameBatch": 0, "originalBatchSize": 0}
    assert await stage.rest.get(f"{T}/lastMessageId") == {**found, "entryId": 1, **of_batch}
    await stage.publish((b"\0\0\0\3xyz", 1))
    assert await stage.rest.get(f"{T}/lastMessageId") == {**found, "entryId": 2}
    await stage.roll()
    await stage.rest.done("DELETE", f"{T}/truncate")
    nowhere = {**EARLIEST_ID, "batchSize": 0, "batchIndex": -1}
    assert await stage.rest.get(f"{T}/lastMessageId") == nowhere


# unchanged behavior


@pytest.mark.req("S415-40")
def test_there_is_no_key_and_no_command_for_it() -> None:
    assert {key.name for key in fields(Config) if "index" in key.name.lower()} == {
        "acknowledgmentAtBatchIndexLevelEnabled",
        "managedLedgerMaxBatchDeletedIndexToPersist",
    }
    assert not [spec.name for spec in COMMANDS.values() if "INDEX" in spec.name]


@pytest.mark.req("S415-34")
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_failed_append_gives_its_indexes_back(bed: Bed, restarted: bool) -> None:
    store = HeldStorage()
    async with staged(storage=store) as stage:
        (kept,) = await stage.batches(2)
        store.holding = True
        await stage.wire.write(stage.wire.sends(batch_of(b"x", b"y", b"z"), num_messages=3))
        await stage.wire.alive()
        store.fail()
        store.release()
        assert stage.bed.topic().ledger.last_confirmed == kept
        if not restarted:
            other = await stage.bed.connect()
            await other.producer()
            (following,) = await other.publish(plain(b"x"))
            assert await stage.ids(1, 2) == [kept, following]
    if restarted:
        async with staged(storage=store) as stage:
            (following,) = await stage.batches(1)
            assert await stage.ids(1, 2) == [kept, following]


@pytest.mark.req("S415-14")
async def test_no_index_of_a_topic_that_is_not_there(stage: Stage) -> None:
    refused = stage.rest.refused
    text = "Topic persistent://public/default/absent not found"
    assert await refused("GET", f"{TOPICS}/absent/getMessageIdByIndex?index=0") == (404, text)
    for namespace in ("public/absent", "absent/default"):
        url = f"{ADMIN}/persistent/{namespace}/t/getMessageIdByIndex?index=0"
        assert await refused("GET", url) == (404, "Namespace not found")


async def test_many_markers_hold_nobody_up(stage: Stage) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    await stage.publish((plain(b"x"), 1), *[(MARKER, 1)] * 400, (plain(b"y"), 1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        await trio.lowlevel.checkpoint()
        turns = 0
        await stage.rest.get(f"{INDEX}?index=1")
        assert turns >= 4  # a pause every 64 steps; trio chooses at random which task runs first
        nursery.cancel_scope.cancel()
