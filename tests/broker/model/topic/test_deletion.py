"""Deletions of topics whose commit fails: the topic stays, the caller gets an error, and a second request succeeds."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from pulsarium.broker.model.errors import ServiceNotReadyError
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.session.session import sessions_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.commands.coordinators import begin, using
from tests.broker.full_disk import NAME, ROLLING, STRING, disk, used
from tests.broker.model.compaction.topics import compact
from tests.broker.web.admin.rest import NAMESPACES, TOPICS
from tests.broker.wire import TOPIC, Shared, Type, plain


async def test_a_topic_deleted_in_vain_is_as_it_was(autojump_clock: object) -> None:
    async with disk() as it:
        await used(await it.bed.connect())
        await it.rest.done("POST", f"{TOPICS}/t/maxConsumers", 7)
        for _ in range(2):
            before = it.left()
            await it.full("DELETE", f"{TOPICS}/t?force=true")
            assert it.left() == before
            assert await it.rest.get(TOPICS) == [TOPIC]
            assert it.backlogs() == {"some": 1, "none": 3}
            assert it.topic.policies.max_consumers == 7
            assert len(await it.rest.get("/admin/v2/schemas/public/default/t/schemas")) == 1
        wire = await it.bed.connect()
        await wire.producer()
        await wire.publish(plain(b"3"))
        await wire.subscribe(name="some", type=Shared)
        await wire.flow()
        assert await wire.payloads(2) == [b"1", b"3"]
        ledgers = it.topic.ledger.ledgers.keys()
        assert ledgers & it.store.entries.keys()
        await it.rest.done("DELETE", f"{TOPICS}/t?force=true")
        assert it.left() == []
        assert not ledgers & it.store.entries.keys()
        again = await it.bed.connect()
        await again.producer()
        await again.publish(plain(b"new"))
    async with disk(it.store) as it:  # the new topic has nothing of the old one
        assert it.backlogs() == {}
        assert it.topic.ledger.count == 1
        assert it.topic.policies.max_consumers == 0


async def test_nobody_makes_a_topic_anew_whose_deletion_is_on_its_way(autojump_clock: object) -> None:
    def meanwhile() -> None:
        assert not it.topics.exists(NAME)
        with pytest.raises(ServiceNotReadyError, match="Topic is temporarily unavailable"):
            it.topics.create(NAME)

    async with disk() as it:
        await used(await it.bed.connect())
        await it.full("DELETE", f"{TOPICS}/t?force=true", meanwhile)
        assert it.backlogs() == {"some": 1, "none": 3}


async def test_those_who_watch_topics_hear_that_it_is_there_again(autojump_clock: object) -> None:
    async with disk() as it:
        wire, watcher = await it.bed.connect(), await it.bed.connect(flags=["supports_topic_watchers"])
        await wire.producer()
        await watcher.ask(Type.WATCH_TOPIC_LIST, namespace="public/default", topics_pattern=f"{TOPIC}.*", watcher_id=1)
        await it.full("DELETE", f"{TOPICS}/t?force=true")
        assert list((await watcher.expect(Type.WATCH_TOPIC_UPDATE)).deleted_topics) == [TOPIC]
        assert list((await watcher.expect(Type.WATCH_TOPIC_UPDATE)).new_topics) == [TOPIC]


@pytest.mark.parametrize("kept", [False, True])
async def test_messages_on_their_way_to_a_topic_that_is_deleted_in_vain(autojump_clock: object, kept: bool) -> None:
    """Messages that were committed before stay. Producers get no receipt, and send their messages again."""
    async with disk(brokerDeduplicationEnabled=True) as it:
        wire = await it.bed.connect()
        await wire.producer(producer_name="p")
        await wire.publish(plain(b"0", producer_name="p"))
        it.store.holding = True
        await wire.write(wire.sends(plain(b"1", producer_name="p")))
        await wire.quiet()
        await wire.write(wire.sends(plain(b"2", producer_name="p")))
        await wire.quiet()
        it.topics.delete(NAME, force=True)
        await trio.testing.wait_all_tasks_blocked()
        it.store.release(2 if kept else 1)
        it.store.fail()
        it.store.release()
        await trio.testing.wait_all_tasks_blocked()
        topic = it.topic
        assert topic.ledger.count == (3 if kept else 2)
        assert topic.last_sequence_id("p") == (2 if kept else 1)
        (session,) = sessions_of(it.bed.broker)
        assert session.gate.unanswered == 0
        again = await it.bed.connect()
        await again.producer(producer_name="other")
        await again.publish(plain(b"3"))
    async with disk(it.store) as it:
        assert it.topic.ledger.count == (4 if kept else 3)


async def test_a_ledger_that_is_full_when_its_topic_is_deleted(autojump_clock: object) -> None:
    """The topic must not begin another ledger."""
    async with disk(**ROLLING) as it:
        wire = await it.bed.connect()
        await wire.producer()
        it.store.holding = True
        await wire.write(wire.sends(plain(b"0")))
        await wire.quiet()
        it.topics.delete(NAME, force=True)
        it.store.release()
        await wire.rest()
        assert it.left() == []


async def test_a_topic_that_is_forgotten_leaves_no_memory(autojump_clock: object) -> None:
    async with disk() as it:
        await used(await it.bed.connect())
        cache = it.bed.broker.cluster.cache
        assert cache.size
        it.topics.forget_all()
        assert not cache.size


@pytest.mark.parametrize("ended", [False, True])
async def test_a_transaction_on_a_topic_that_is_deleted_in_vain(autojump_clock: object, ended: bool) -> None:
    """The messages of an open transaction stay hidden. An end that was committed before the deletion takes effect."""
    async with disk(transactionCoordinatorEnabled=True) as it:
        wire = await using(it.bed)
        txn = await begin(wire)
        await wire.ask(Type.ADD_PARTITION_TO_TXN, **txn, partitions=[TOPIC])
        await wire.producer()
        it.store.holding = not ended
        await wire.send(Type.SEND, plain(b"open", **txn), producer_id=0, sequence_id=0, **txn)
        await wire.rest()
        if ended:
            it.store.holding = True
            await wire.send(Type.END_TXN, request_id=99, **txn, txn_action=pb.COMMIT)
            await wire.rest()
        assert len(it.store.waiting) == 1
        it.topics.delete(NAME, force=True)
        await trio.testing.wait_all_tasks_blocked()
        it.store.release(1)
        it.store.fail()
        it.store.release()
        topic = it.topic
        assert topic.ledger.count == (2 if ended else 1)
        assert (topic.ledger.max_read == topic.ledger.last_confirmed) == ended
        await it.rest.done("DELETE", f"{TOPICS}/t?force=true")
        assert [path for path in it.left() if "persistent/t" in path] == []


@pytest.mark.parametrize("kept", [0, 1, 2])
async def test_a_compaction_whose_end_is_on_its_way(autojump_clock: object, kept: int) -> None:
    """The end of the compaction and the deletion are the next commits, and `kept` of them succeed."""
    async with disk() as it:
        wire = await it.bed.connect()
        await wire.producer()
        await wire.publish(plain(b"1", partition_key="k"))
        await compact(it.topic)
        await wire.publish(plain(b"2", partition_key="k"))
        it.store.holding = True
        it.topic.compaction.trigger()
        record = it.topic.log.compaction

        def ends() -> bool:
            return record.mark_before is not None

        while not ends():
            await trio.sleep(0.01)
            if not ends() and it.store.waiting:
                it.store.release(1)
        it.topics.delete(NAME, force=True)
        await trio.testing.wait_all_tasks_blocked()
        it.store.release(kept)
        if kept < 2:
            it.store.fail()
        it.store.release()
        if kept < 2:
            found = it.topic.compaction.compacted.last_entry()
            assert found is not None
            assert found[1].endswith(b"2" if kept else b"1")
            await it.rest.done("DELETE", f"{TOPICS}/t?force=true")
        await wire.rest()
        assert it.store.entries == {}
        assert not [path for path in it.left("/compaction/") if "cursor-ledgers" not in path]


async def test_a_ledger_of_compaction_that_could_not_be_deleted_twice(autojump_clock: object) -> None:
    async with disk() as it:
        await used(await it.bed.connect())
        record, turn = it.topic.log.compaction, it.bed.broker.turn
        left = record.begin()
        turn.store_entries(left.id, 0, [b"x"])
        turn.finish()
        for attempt in (lambda: record.discard(left), record.begin):
            it.store.holding = True
            attempt()
            turn.finish()
            it.store.fail()
            it.store.release()
            assert left.id in it.store.entries
        await it.rest.done("DELETE", f"{TOPICS}/t?force=true")
        assert left.id not in it.store.entries


async def test_a_partitioned_topic_deleted_in_vain_is_as_it_was(autojump_clock: object) -> None:
    async with disk() as it:
        await it.rest.done("PUT", f"{TOPICS}/t/partitions", 2)
        await it.rest.done("POST", f"{TOPICS}/t/maxConsumers", 7)
        wire = await it.bed.connect()
        await wire.producer(f"{TOPIC}-partition-1", schema=STRING)
        await wire.publish(plain(b"x"))
        await it.full("DELETE", f"{TOPICS}/t/partitions?force=true")
        assert (await it.rest.get(f"{TOPICS}/t/partitions"))["partitions"] == 2
        partition = it.topics.find(NAME.partition(1))
        assert isinstance(partition, PersistentTopic)
        assert (partition.ledger.count, partition.policies.max_consumers) == (1, 7)
        assert len(await it.rest.get("/admin/v2/schemas/public/default/t/schemas")) == 1
        await it.rest.done("DELETE", f"{TOPICS}/t/partitions?force=true")
        assert it.left("/admin/partitioned-topics/") == []
        assert (await it.rest.refused("GET", f"{TOPICS}/t/partitions"))[0] == 404


async def test_a_namespace_deleted_in_vain_keeps_its_topics(autojump_clock: object) -> None:
    async with disk(forceDeleteNamespaceAllowed=True) as it:
        await it.rest.done("PUT", f"{NAMESPACES}/public/mine", {"bundles": {"numBundles": 1}})
        await it.rest.done("POST", f"{NAMESPACES}/public/mine/maxConsumersPerTopic", 5)
        await it.rest.done("PUT", "/admin/v2/persistent/public/mine/parts/partitions", 2)
        wire = await it.bed.connect()
        await wire.producer("persistent://public/mine/t", schema=STRING)
        await wire.publish(plain(b"x"))
        name = TopicName.parse("persistent://public/mine/t")
        await it.full("DELETE", f"{NAMESPACES}/public/mine?force=true")
        found = it.topics.find(name)
        assert isinstance(found, PersistentTopic)
        assert (found.ledger.count, found.policies.max_consumers) == (1, 5)
        assert await it.rest.get("/admin/v2/persistent/public/mine/partitioned") == ["persistent://public/mine/parts"]
        await it.rest.done("DELETE", f"{NAMESPACES}/public/mine?force=true")
        assert [path for path in it.store.metadata if "public/mine" in path] == []
        assert "public/mine" not in await it.rest.get(f"{NAMESPACES}/public")


async def test_a_damaged_topic_deleted_in_vain_stays_damaged(autojump_clock: object) -> None:
    async with disk() as it:
        await used(await it.bed.connect())
    ledger = min(it.store.entries)
    del it.store.entries[ledger][1]
    async with disk(it.store) as it:
        for _ in range(2):
            await it.full("DELETE", f"{TOPICS}/t?force=true")
            wire = await it.bed.connect()
            assert "is damaged" in (await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=0))[1]
        await it.rest.done("DELETE", f"{TOPICS}/t?force=true")
        assert not it.store.entries
        await (await it.bed.connect()).producer()


async def test_policies_deleted_in_vain_still_hold(autojump_clock: object) -> None:
    async with disk() as it:
        await used(await it.bed.connect())
        await it.rest.done("POST", f"{TOPICS}/t/maxConsumers", 7)
        topic = it.topic
        await it.full("DELETE", f"{TOPICS}/t/policies")
        assert topic.policies.max_consumers == 7
        await it.rest.done("DELETE", f"{TOPICS}/t/policies")
        assert topic.policies.max_consumers == 0
