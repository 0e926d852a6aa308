"""Compaction of a topic: which messages stay, also with publishing clients, restarts, failed commits and kills."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config import Config
from pulsarium.broker.config.keys import APPEND_INDEX
from pulsarium.broker.model.compaction import compaction as run
from pulsarium.broker.model.compaction.compacted import CompactedLedger
from pulsarium.broker.model.compaction.compactor import Compactable, TopicReader, TwoPhaseCompactor
from pulsarium.broker.model.compaction.raw import RawMessage
from pulsarium.broker.model.compaction.record import LEDGER_PROPERTY, CompactionRecord
from pulsarium.broker.model.errors import NamingError, NotAllowedError
from pulsarium.broker.model.ledger.ledger import EntryCache, Ledger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.storage.interface import Batch, Done
from pulsarium.proto.entry import parse_broker_metadata, parse_metadata, payload_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.special_names import COMPACTION_CURSOR
from tests.broker.held import HeldStorage
from tests.broker.model.compaction.topics import (
    NAME,
    Single,
    broker_on,
    compact,
    compacted_entries,
    keyed_batch,
    messages_in,
    publish,
    single,
    status_of,
    topic_of,
    view,
)
from tests.broker.model.upkeep.policed import set_policies
from tests.broker.wire import Bed, batch_of, plain, serving


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pause, and let other tasks run, after each step of a compaction."""
    monkeypatch.setattr(run, "TURN", 0)
    monkeypatch.setattr(run, "TURNS", 1)


@pytest.mark.req("B-32", "S429-10", "S429-31")
async def test_compaction_keeps_the_latest_message_of_each_key(bed: Bed) -> None:
    broker = bed.broker
    topic = topic_of(broker)
    positions = publish(
        broker,
        single("k1", b"a"),
        single("k2", b"b"),
        single("k1", b"c"),
        single("k3", b"x"),
        single("k3", b""),
        single("k4", b"", null_value=True),
        keyed_batch(("k0", b"v0"), ("k0", b"v1"), ("k1", b"v0"), ("k1", b""), compression=pb.LZ4),
        keyed_batch(("k5", b"x"), ("k5", b"")),
    )
    assert topic.compaction.status == "NOT_RUN"
    assert topic.compaction.compacted.horizon is None
    compaction = await compact(topic)
    assert (compaction.status, compaction.error) == ("SUCCESS", "")
    assert compaction.compacted.horizon == positions[-1]
    found = messages_in(compacted_entries(topic))
    assert found == [(positions[1], -1, "k2", b"b"), (positions[6], 1, "k0", b"v1")]
    last = compaction.compacted.last_entry()
    assert last is not None
    assert last[0] == positions[6]
    assert compaction.last_run.removed == 7  # like Pulsar, without the values that a tombstone deletes


@pytest.mark.req("S429-29")
@pytest.mark.parametrize("retained", [False, True])
@pytest.mark.trio
async def test_compaction_drops_messages_without_a_key_unless_told_to_keep_them(
    retained: bool, autojump_clock: object
) -> None:
    async with broker_on(topicCompactionRetainNullKey=retained) as broker:
        publish(broker, single(None, b"alone"), keyed_batch((None, b"in a batch"), ("k", b"v")), batch_of(b"1", b"2"))
        await compact(topic_of(broker))
        keyless: list[Single] = [(None, b"alone"), (None, b"in a batch")] if retained else []
        rest: list[Single] = [(None, b"1"), (None, b"2")] if retained else []
        assert view(topic_of(broker)) == [*keyless, ("k", b"v"), *rest]
        await again(broker)
        assert view(topic_of(broker)) == [*keyless, ("k", b"v"), *rest, ("more", b"x")]


async def again(broker: Broker) -> None:
    """Compact a second time, so that the compaction reads the result of the first one."""
    publish(broker, single("more", b"x"))
    await compact(topic_of(broker))


@pytest.mark.req("S429-17")
async def test_compaction_leaves_encrypted_entries_whole(bed: Bed) -> None:
    keys = [pb.EncryptionKeys(key="x", value=b"y")]
    sealed = batch_of(b"1", b"2", partition_key="k", encryption_keys=keys)
    publish(bed.broker, single("k", b"before"), sealed, single("l", b"x"))
    await compact(topic_of(bed.broker))
    assert [entry for _, entry in compacted_entries(topic_of(bed.broker))] == [sealed, single("l", b"x")]


async def test_a_second_compaction_goes_on_from_the_first(bed: Bed) -> None:
    broker = bed.broker
    topic = topic_of(broker)
    first = publish(broker, single("a", b"1"), single("b", b"1"), keyed_batch(("c", b"1"), ("d", b"1"), ("e", b"1")))
    await compact(topic)
    before = topic.compaction.compacted
    assert isinstance(before, CompactedLedger)
    second = publish(broker, single("a", b"2"), single("c", b""), single("f", b"2"))
    assert view(topic) == [("a", b"1"), ("b", b"1"), ("c", b"1"), ("d", b"1"), ("e", b"1")]
    await compact(topic)
    assert messages_in(compacted_entries(topic)) == [
        (first[1], -1, "b", b"1"),
        (first[2], 1, "d", b"1"),
        (first[2], 2, "e", b"1"),
        (second[0], -1, "a", b"2"),
        (second[2], -1, "f", b"2"),
    ]
    after = topic.compaction.compacted
    assert isinstance(after, CompactedLedger)
    assert after.horizon == second[-1]
    assert after.ledger.id > before.ledger.id
    assert not before.ledger.blocks  # the ledger is deleted
    await compact(topic)  # no entry is new
    assert topic.compaction.compacted is after
    assert topic.compaction.status == "SUCCESS"


async def test_compacting_a_topic_without_messages_succeeds(bed: Bed) -> None:
    compaction = await compact(topic_of(bed.broker))
    assert (compaction.status, compaction.compacted.horizon) == ("SUCCESS", None)
    assert compaction.compacted.last_entry() is None


@pytest.mark.req("S429-31")
async def test_compaction_may_leave_nothing_of_a_topic(bed: Bed) -> None:
    positions = publish(bed.broker, single("k", b"v"), single("k", b""))
    compaction = await compact(topic_of(bed.broker))
    assert compaction.compacted.horizon == positions[-1]
    assert compaction.compacted.last_entry() is None
    assert compacted_entries(topic_of(bed.broker)) == []


async def test_a_topic_has_one_compaction_at_a_time(bed: Bed) -> None:
    topic = topic_of(bed.broker)
    publish(bed.broker, single("k", b"v"))
    topic.compaction.trigger()
    assert topic.compaction.status == "RUNNING"
    with pytest.raises(NotAllowedError, match="Compaction already in progress"):
        topic.compaction.trigger()


@pytest.mark.trio
async def test_others_publish_while_a_topic_is_compacted(autojump_clock: object, small_slices: None) -> None:
    async with broker_on() as broker:
        topic = topic_of(broker)
        publish(broker, *(single(f"k{number % 10}", b"%d" % number) for number in range(50)))
        topic.compaction.trigger()
        published = 50
        while topic.compaction.status == "RUNNING":
            publish(broker, single(f"k{published % 10}", b"%d" % published))
            published += 1
            await trio.sleep(run.PAUSE)
        assert published > 100  # each step let other tasks run
        assert view(topic) == [(f"k{number % 10}", b"%d" % number) for number in range(40, 50)]
        await compact(topic)
        last = range(published - 10, published)
        assert view(topic) == [(f"k{number % 10}", b"%d" % number) for number in last]


@pytest.mark.trio
async def test_others_publish_between_two_pauses_of_a_compaction(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "TURN", 0)
    monkeypatch.setattr(run, "TURNS", 1000)
    async with broker_on() as broker:
        topic = topic_of(broker)
        publish(broker, *(single(f"k{number % 10}", b"%d" % number) for number in range(50)))
        topic.compaction.trigger()
        await trio.sleep(run.PAUSE)
        begun, published = trio.current_time(), 0
        while topic.compaction.status == "RUNNING" and published < 1000:
            publish(broker, single("other", b"x"))
            published += 1
            await trio.lowlevel.checkpoint()
        assert (topic.compaction.status, trio.current_time()) == ("SUCCESS", begun)
        assert published > 100  # each step let other tasks run


@pytest.mark.trio
async def test_the_compacted_ledger_survives_restart_and_unloading(autojump_clock: object) -> None:
    storage = HeldStorage()
    async with broker_on(storage) as broker:
        positions = publish(broker, *(single(f"k{number % 5}", b"%d" % number) for number in range(20)))
        await compact(topic_of(broker))
        before = compacted_entries(topic_of(broker))
        assert len(before) == 5
        broker.topics.unload(NAME)
        assert compacted_entries(topic_of(broker)) == before
        assert topic_of(broker).compaction.status == "NOT_RUN"
    async with broker_on(storage) as broker:
        topic = topic_of(broker)
        assert COMPACTION_CURSOR not in topic.subscriptions
        compacted = topic.compaction.compacted
        assert compacted.horizon == positions[-1]
        loaded = trio.Event()
        assert compacted.read(Position(-1, -1), 10, loaded.set) is None
        await loaded.wait()
        assert compacted.read(Position(-1, -1), 10, loaded.set) == before
        assert compacted.last_entry() == before[-1]
        await compact(topic)  # no entry is new
        publish(broker, single("k0", b""))
        await compact(topic)
        assert view(topic) == [(f"k{number % 5}", b"%d" % number) for number in range(16, 20)]


async def test_a_compacted_topic_is_read_from_any_position(bed: Bed) -> None:
    topic = topic_of(bed.broker)
    positions = publish(bed.broker, *(single(f"k{number}", b"v" * (number % 3)) for number in range(30)))
    await compact(topic)
    kept = [position for number, position in enumerate(positions) if number % 3]
    for start in [Position(-1, -1), *positions, Position(positions[-1].ledger_id + 1, 0)]:
        for _ in range(2):  # the second read uses the remembered place
            found = topic.compaction.compacted.read(start, 4, lambda: None)
            assert found is not None
            assert [position for position, _ in found] == [each for each in kept if each >= start][:4]


class Snapshots(HeldStorage):
    """A store that remembers its state after each commit, as a broker killed there would leave it."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[HeldStorage] = []

    def _keep(self, batch: Batch) -> None:
        super()._keep(batch)
        self.taken.append(self.left_behind())


def no_orphans(storage: HeldStorage, topic: PersistentTopic) -> None:
    """Assert that the topic or its compaction knows each ledger in the store."""
    compacted = topic.compaction.compacted
    known = set(topic.ledger.ledgers)
    if isinstance(compacted, CompactedLedger):
        known.add(compacted.ledger.id)
    assert set(storage.entries) <= known
    assert not [path for path in storage.metadata if path.startswith("/compaction/")]


@pytest.mark.trio
async def test_a_broker_killed_after_any_commit_has_the_old_or_the_new_compaction(
    autojump_clock: object, small_slices: None
) -> None:
    storage = Snapshots()
    old: list[Single] = [("a", b"1"), ("b", b"1"), ("c", b"1")]
    new: list[Single] = [("c", b"1"), ("a", b"2"), ("d", b"2")]
    async with broker_on(storage) as broker:
        publish(broker, *(single(*each) for each in old))
        await compact(topic_of(broker))
        publish(broker, single("a", b"2"), single("b", b""), single("d", b"2"))
        storage.taken.clear()
        await compact(topic_of(broker))
        assert view(topic_of(broker)) == new
        no_orphans(storage, topic_of(broker))
    assert len(storage.taken) > 5
    seen = []
    for left in storage.taken:
        async with broker_on(left) as broker:
            topic = topic_of(broker)
            compacted = topic.compaction.compacted
            broker.turn.finish()
            no_orphans(left, topic)
            while compacted.read(Position(-1, -1), 1, lambda: None) is None:
                pass
            seen.append(view(topic))
            await compact(topic)
            assert view(topic) == new
            no_orphans(left, topic)
    assert seen == sorted(seen, key=[old, new].index)
    assert {len(each) for each in seen} == {3}
    assert old in seen
    assert new in seen


@pytest.mark.trio
async def test_a_failed_commit_leaves_the_compaction_before_in_use(autojump_clock: object, small_slices: None) -> None:
    async def attempt(fails: int) -> bool:
        """Let commit number `fails` of a compaction fail, and return whether the compaction had so many commits."""
        storage = HeldStorage()
        async with broker_on(storage) as broker:
            topic = topic_of(broker)
            publish(broker, single("a", b"1"), single("b", b"1"))
            await compact(topic)
            before = topic.compaction.compacted
            assert isinstance(before, CompactedLedger)
            publish(broker, single("a", b"2"), single("c", b"2"))
            storage.holding = True
            topic.compaction.trigger()
            count = 0
            while topic.compaction.status == "RUNNING":
                await trio.sleep(0.01)
                if storage.waiting:
                    if count == fails:
                        storage.fail()
                        storage.release()
                    else:
                        storage.release(1)
                    count += 1
            storage.release()
            await trio.sleep(1)
            if topic.compaction.status == "ERROR":
                assert topic.compaction.error == "commit failed: the disk is full"
                assert topic.compaction.compacted is before
                assert view(topic) == [("a", b"1"), ("b", b"1")]
                cursor = topic.log.compaction.cursor
                assert cursor is not None
                assert cursor.properties == {LEDGER_PROPERTY: before.ledger.id}
                assert cursor.mark_delete == before.horizon
            no_orphans(storage, topic_of(broker))
            if count <= fails:
                return False
            topic = topic_of(broker)
            await compact(topic)
            assert view(topic) == [("b", b"1"), ("a", b"2"), ("c", b"2")]
            no_orphans(storage, topic)
        async with broker_on(storage) as broker:
            await compact(topic_of(broker))
            publish(broker, single("z", b""))
            await compact(topic_of(broker))
            assert view(topic_of(broker)) == [("b", b"1"), ("a", b"2"), ("c", b"2")]
        return True

    attempts = 0
    while await attempt(attempts):
        attempts += 1
    assert attempts > 4


@pytest.mark.trio
async def test_unloading_and_deleting_at_any_moment(autojump_clock: object, small_slices: None) -> None:
    for moment in range(25):
        for delete in (False, True):
            storage = HeldStorage()
            async with broker_on(storage) as broker:
                publish(broker, single("a", b"1"), single("b", b"1"))
                await compact(topic_of(broker))
                publish(broker, single("a", b"2"))
                topic_of(broker).compaction.trigger()
                await trio.sleep(moment * run.PAUSE)
                if delete:
                    broker.topics.delete(NAME, force=True)
                    await trio.sleep(1)
                    assert storage.entries == {}
                    assert not [path for path in storage.metadata if path.startswith(("/compaction/", "/managed-"))]
                else:
                    broker.topics.unload(NAME)
                    await trio.sleep(1)
                    topic = topic_of(broker)
                    broker.turn.finish()
                    no_orphans(storage, topic)
                    await compact(topic)
                    assert view(topic) == [("b", b"1"), ("a", b"2")]


@pytest.mark.trio
async def test_unloading_and_deleting_while_the_new_ledger_is_named(autojump_clock: object) -> None:
    for delete in (False, True):
        storage = HeldStorage()
        async with broker_on(storage) as broker:
            publish(broker, single("a", b"1"))
            await compact(topic_of(broker))
            publish(broker, single("a", b"2"))
            topic_of(broker).compaction.trigger()
            storage.holding = True
            while not (storage.waiting and any("/cursor-ledgers/" in path for path in storage.waiting[0][0].metadata)):
                if storage.waiting:
                    storage.release(1)
                await trio.sleep(run.PAUSE)
            if delete:
                broker.topics.delete(NAME, force=True)
            else:
                broker.topics.unload(NAME)
            storage.release()
            await trio.sleep(1)
            if delete:
                assert storage.entries == {}
            else:
                assert view(topic_of(broker)) == [("a", b"2")]
                no_orphans(storage, topic_of(broker))


async def test_the_cursor_of_compaction_keeps_entries_from_being_trimmed(bed: Bed) -> None:
    set_policies(bed.broker, compaction_threshold=1000)
    topic = topic_of(bed.broker)
    cursor = topic.log.compaction.cursor
    assert cursor is not None
    (first,) = publish(bed.broker, single("k", b"v"))
    topic.ledger._roll_over()
    (second,) = publish(bed.broker, single("k", b"w"))
    topic.trimmer.trim()
    assert topic.ledger.is_valid(first)
    await compact(topic)
    assert cursor.mark_delete == second
    topic.trimmer.trim()
    assert not topic.ledger.is_valid(first)
    assert view(topic) == [("k", b"w")]


async def test_a_namespace_threshold_starts_compaction(bed: Bed) -> None:
    set_policies(bed.broker, inactive_topic_policies={"deleteWhileInactive": False})
    topic = topic_of(bed.broker)
    publish(bed.broker, *[single("k", bytes(100))] * 5)
    await trio.sleep(61)
    assert status_of(topic) == "NOT_RUN"
    set_policies(bed.broker, compaction_threshold=1000, inactive_topic_policies={"deleteWhileInactive": False})
    await trio.sleep(61)
    assert status_of(topic) == "NOT_RUN"
    publish(bed.broker, *[single("k", bytes(100))] * 5)
    await trio.sleep(61)
    assert status_of(topic) == "SUCCESS"
    before = topic.compaction.compacted
    publish(bed.broker, *[single("k", bytes(100))] * 5)
    await trio.sleep(61)
    assert topic.compaction.compacted is before  # only new entries count for the threshold
    publish(bed.broker, *[single("k", bytes(100))] * 5)
    await trio.sleep(61)
    assert topic.compaction.compacted is not before


@pytest.mark.trio
async def test_the_threshold_of_the_broker_starts_compaction(autojump_clock: object) -> None:
    async with broker_on(
        brokerServiceCompactionThresholdInBytes=100, brokerServiceCompactionMonitorIntervalInSeconds=5
    ) as broker:
        publish(broker, *[single("k", bytes(100))] * 5)
        await trio.sleep(6)
        assert topic_of(broker).compaction.status == "SUCCESS"


@pytest.mark.req("S429-26")
async def test_the_reader_of_compaction_can_be_substituted(bed: Bed) -> None:
    class Upper(TopicReader):
        def read(self, ready: Any) -> list[RawMessage] | None:
            found = super().read(ready)
            return found and [
                RawMessage(each.position, plain(payload_of(each.entry).upper(), partition_key="one key"))
                for each in found
            ]

    class OtherReader(TwoPhaseCompactor):
        def create_raw_reader(self, topic: Compactable) -> Upper:
            return Upper(topic)

    topic = topic_of(bed.broker)
    publish(bed.broker, single("a", b"x"), single("b", b"y"))
    topic.compaction.compactor = OtherReader()
    await compact(topic)
    assert view(topic) == [("one key", b"Y")]


async def test_a_failing_engine_leaves_the_topic_as_it_was(bed: Bed) -> None:
    class Failing(TwoPhaseCompactor):
        def compact(self, *arguments: Any, **options: Any) -> Iterator[bool]:
            yield from super().compact(*arguments, **options)
            raise ValueError("it is broken")

    topic = topic_of(bed.broker)
    publish(bed.broker, single("a", b"x"))
    topic.compaction.compactor = Failing()
    compaction = await compact(topic)
    assert (compaction.status, compaction.error) == ("ERROR", "it is broken")
    assert compaction.compacted.horizon is None
    assert 0 < compaction.last_run.failed_ms <= topic.now_ms()
    compaction.compactor = TwoPhaseCompactor()
    await compact(topic)
    assert (compaction.status, compaction.error) == ("SUCCESS", "")


@pytest.mark.trio
async def test_a_run_that_ends_while_a_commit_is_pending_is_adopted_once(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, calls, adopted = HeldStorage(), list[Callable[[], None]](), list[Ledger]()
    adopt = CompactionRecord.adopt

    class Waiting(TwoPhaseCompactor):
        def compact(self, reader: Any, writer: Any, ready: Any, **options: Any) -> Iterator[bool]:
            yield from super().compact(reader, writer, ready, **options)
            storage.holding = True
            calls.append(ready)
            yield True

    def watched(record: CompactionRecord, ledger: Ledger, horizon: Position, done: Done) -> None:
        adopted.append(ledger)
        adopt(record, ledger, horizon, done)

    monkeypatch.setattr(CompactionRecord, "adopt", watched)
    async with broker_on(storage) as broker:
        topic = topic_of(broker)
        publish(broker, single("a", b"1"), single("b", b"1"))
        topic.compaction.compactor = Waiting()
        topic.compaction.trigger()
        await trio.sleep(1)
        earlier = len(storage.waiting)
        calls[0]()
        await trio.sleep(1)
        storage.release(earlier)
        await trio.sleep(1)
        storage.release()
        await trio.sleep(1)
        assert (topic.compaction.status, len(adopted)) == ("SUCCESS", 1)
        assert view(topic) == [("a", b"1"), ("b", b"1")]


@pytest.mark.trio
async def test_compaction_keeps_broker_entry_metadata_where_clients_see_it(autojump_clock: object) -> None:
    for exposing in (True, False):
        config = Config(
            brokerEntryMetadataInterceptors=(APPEND_INDEX,), exposingBrokerEntryMetadataToClientEnabled=exposing
        )
        async with serving(config) as bed:
            wire = await bed.connect()
            await wire.producer()
            await wire.publish(single("a", b"x"), keyed_batch(("b", b"y"), ("b", b"z")))
            topic = topic_of(bed.broker)
            await compact(topic)
            stamps = [parse_broker_metadata(entry) for _, entry in compacted_entries(topic)]
            assert [stamp is not None for stamp in stamps] == [exposing, exposing]
            assert [parse_metadata(entry).sequence_id for _, entry in compacted_entries(topic)] == [0, 0]


async def test_the_name_of_the_compaction_cursor_is_reserved(bed: Bed) -> None:
    with pytest.raises(NamingError):
        topic_of(bed.broker).subscribe(COMPACTION_CURSOR, earliest=True)


async def spilled(cache: EntryCache) -> None:
    """Wait until a thread has moved all cached entries out of memory."""
    while cache.size:
        cache.trim()
        await trio.sleep(1)


async def test_a_topic_that_was_spilled_is_compacted(bed: Bed) -> None:
    """The store keeps no entries here, and the cache may hold none, so that entries are spilled to a file."""
    bed.broker.cluster.cache.limit = 0
    set_policies(bed.broker, inactive_topic_policies={"deleteWhileInactive": False})
    topic = topic_of(bed.broker)
    for number in range(20):
        publish(bed.broker, *(single(f"k{each}", b"%d" % number) for each in range(10)))
        await trio.sleep(1)
    await spilled(bed.broker.cluster.cache)
    await compact(topic)
    await spilled(bed.broker.cluster.cache)
    found: list[tuple[Position, bytes]] = []
    start = Position(-1, -1)
    while True:
        loaded = trio.Event()
        entries = topic.compaction.compacted.read(start, 3, loaded.set)
        if entries is None:
            await loaded.wait()
        elif entries:
            found += entries
            start = Position(entries[-1][0].ledger_id, entries[-1][0].entry_id + 1)
        else:
            break
    assert [(key, value) for _, _, key, value in messages_in(found)] == [(f"k{each}", b"19") for each in range(10)]
    assert bed.broker.cluster.cache.loads > 3
