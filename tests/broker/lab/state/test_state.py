"""Reset, snapshot and restore of a broker's state."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.testing

from pulsarium.broker.config import Config, ConfigError, ServeOptions
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.faults import Close
from pulsarium.broker.lab.masks import Mask
from pulsarium.broker.model.compaction.compacted import CompactedLedger
from pulsarium.broker.model.compaction.record import CompactionRecord
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.server import open_core
from pulsarium.broker.storage import snapshot
from pulsarium.broker.storage.interface import StorageError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.lab.attended import is_attended
from tests.broker.wire import TOPIC, Bed, Earliest, Received, Shared, Type, Wire, batch_of, plain, position_of, serving


@pytest.fixture(params=["memory", "sqlite"])
async def either(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bed]:
    async with serving(data=tmp_path / "data" if request.param == "sqlite" else None) as bed:
        yield bed


def lab_of(bed: Bed) -> Lab:
    return bed.broker.cluster.attached(Lab)


def topics(bed: Bed) -> list[str]:
    return bed.broker.topics.names("public/default", non_persistent=True)


async def said(wire: Wire) -> list[Received]:
    """Return what the broker has sent until now."""
    await wire.send(Type.PING)
    received = []
    while (each := await wire.next()).command.type != Type.PONG:
        received.append(each)
    return received


async def drain(wire: Wire, name: str = "sub", count: int = 3, consumer_id: int = 7) -> list[bytes]:
    await wire.subscribe(name=name, type=Shared, consumer_id=consumer_id, initialPosition=Earliest)
    await wire.flow(consumer_id=consumer_id)
    return await wire.payloads(count)


async def test_reset_forgets_everything_that_is_kept(either: Bed) -> None:
    wire = await either.connect()
    metadata = either.broker.metadata
    await wire.producer()
    await wire.producer("non-persistent://public/default/n", producer_id=1)
    await wire.ask(Type.GET_OR_CREATE_SCHEMA, topic=TOPIC, schema={"name": "s", "type": 1, "schema_data": b""})
    metadata.put_tenant("t", {})
    metadata.put_namespace("t/n", {})
    metadata.put_partitioned(TopicName.parse("persistent://t/n/p"), 3)
    metadata.put_topic_policies(TopicName.parse(TOPIC), {"maxProducers": 3})
    either.broker.cluster.dynamic.put("maxConcurrentLookupRequest", "7")
    (before,) = await wire.publish(plain(b"x"))
    await lab_of(either).state.reset()
    assert topics(either) == []
    assert sorted(metadata.namespaces) == ["public/default", "pulsar/system"]
    assert sorted(metadata.tenants) == ["public", "pulsar"]
    assert (metadata.partitioned, metadata.topic_policies) == ({}, {})
    assert either.broker.schemas.latest(TopicName.parse(TOPIC)) is None
    assert either.broker.cluster.dynamic.values == {}
    closed = [each.command.close_producer.producer_id for each in await said(wire)]
    assert sorted(closed) == [0, 1]
    await wire.producer()  # the same connection, but a new topic of that name
    (after,) = await wire.publish(plain(b"y"))
    assert after.ledger_id > before.ledger_id
    assert await drain(wire, count=1) == [b"y"]


async def test_reset_forgets_many_topics_at_once(either: Bed) -> None:
    wire = await either.connect()
    for number in range(20):
        await wire.producer(f"{TOPIC}{number}", producer_id=number)
        await wire.publish(*[plain(b"x" * 100)] * 10, producer_id=number)
    await lab_of(either).state.reset()
    assert topics(either) == []


async def test_reset_of_the_lab(either: Bed) -> None:
    lab = lab_of(either)

    def changed() -> None:
        lab.faults.add(Close(), "SEND")
        lab.masks.add(Mask(max_protocol_version=3))
        lab.clock.freeze()

    changed()
    await lab.state.reset(lab=False)
    assert (len(lab.faults.rules), len(lab.masks.worn), lab.clock.frozen) == (1, 1, True)
    await lab.clock.advance(1000)
    await lab.state.reset()
    assert (lab.faults.rules, lab.masks.worn, lab.clock.frozen) == ([], [], False)
    assert abs(lab.clock.offset_ms) < 100
    assert not is_attended(either.broker.cluster)


async def test_watchers_hear_of_both(either: Bed, tmp_path: Path) -> None:
    wire, watching = await either.connect(), await either.connect(flags=["supports_topic_watchers"])
    await wire.producer()
    pattern = {"watcher_id": 1, "namespace": "public/default", "topics_pattern": "persistent://public/default/.*"}
    await watching.ask(Type.WATCH_TOPIC_LIST, **pattern)
    state = lab_of(either).state
    await state.snapshot(tmp_path / "s")
    await state.reset()
    assert (await watching.expect(Type.WATCH_TOPIC_UPDATE)).deleted_topics == [TOPIC]
    await state.restore(tmp_path / "s")
    assert (await watching.expect(Type.WATCH_TOPIC_UPDATE)).new_topics == [TOPIC]


async def fill(bed: Bed) -> Wire:
    """Publish three messages, and let a consumer of `sub` acknowledge the second. Return the connection."""
    wire = await bed.connect()
    await wire.producer()
    await wire.subscribe(type=Shared)
    await wire.flow()
    positions = await wire.publish(plain(b"1"), plain(b"2"), plain(b"3"))
    await wire.messages(3)
    await wire.ack(positions[1])
    return wire


async def test_a_snapshot_brings_back_messages_and_what_was_acknowledged(either: Bed, tmp_path: Path) -> None:
    wire = await fill(either)
    state = lab_of(either).state
    await state.snapshot(tmp_path / "s")
    await wire.publish(plain(b"later"))
    await said(wire)
    await state.restore(tmp_path / "s")
    closed = {each.command.type for each in await said(wire)}
    assert closed == {Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER}
    assert await drain(wire, count=2) == [b"1", b"3"]
    assert await said(wire) == []


async def test_partly_acknowledged_batches(either: Bed, tmp_path: Path) -> None:
    wire = await either.connect()
    await wire.producer()
    await wire.subscribe(type=Shared)
    await wire.flow()
    await wire.publish(batch_of(b"a", b"b", b"c"), num_messages=3)
    position = (await wire.message()).position
    message_ids = [{"ledgerId": position.ledger_id, "entryId": position.entry_id, "ack_set": [0b110]}]
    await wire.ask(Type.ACK, consumer_id=0, ack_type=pb.CommandAck.Individual, message_id=message_ids)
    state = lab_of(either).state
    await state.snapshot(tmp_path / "s")
    await state.reset()
    await state.restore(tmp_path / "s")
    await said(wire)
    await wire.subscribe(type=Shared)
    await wire.flow()
    assert (await wire.message()).command.ack_set == [0b110]


@pytest.mark.parametrize("to_sqlite", [False, True])
async def test_across_stores_and_a_restart(either: Bed, tmp_path: Path, to_sqlite: bool) -> None:
    await fill(either)
    await lab_of(either).state.snapshot(tmp_path / "s")
    data = tmp_path / "other" if to_sqlite else None
    async with serving(data=data) as other:
        await (await other.connect()).producer(f"{TOPIC}-of-before")
        await lab_of(other).state.restore(tmp_path / "s")
        assert topics(other) == [TOPIC]
        if not to_sqlite:
            assert await drain(await other.connect(), count=2) == [b"1", b"3"]
    if to_sqlite:
        async with serving(data=data) as again:
            assert topics(again) == [TOPIC]
            assert await drain(await again.connect(), count=2) == [b"1", b"3"]


async def test_the_same_snapshot_again_and_again(either: Bed, tmp_path: Path) -> None:
    wire = await fill(either)
    state = lab_of(either).state
    await state.snapshot(tmp_path / "s")
    for _ in range(3):
        await state.restore(tmp_path / "s")
        await said(wire)
        assert await drain(wire, count=2) == [b"1", b"3"]
        await wire.producer()
        await wire.publish(plain(b"new"))
        await said(wire)


async def test_the_database_of_a_broker_that_has_stopped(tmp_path: Path) -> None:
    async with serving(data=tmp_path / "data") as bed:
        await fill(bed)
    async with serving() as bed:
        await lab_of(bed).state.restore(tmp_path / "data" / "pulsarium.db")
        assert await drain(await bed.connect(), count=2) == [b"1", b"3"]


async def test_the_database_of_a_broker_whose_log_has_lost_commits_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data=data) as bed:
        await fill(bed)
    log = max(data.glob("entries-*.log"))
    content = log.read_bytes()
    for happens, said in (
        (lambda: log.write_bytes(content + bytes(99)), f"{log} is damaged at {len(content)}"),
        (log.unlink, f"{log} is missing"),
    ):
        happens()
        async with serving() as bed:
            with pytest.raises(StorageError, match=f"{said}; start serve --data {data}"):
                await lab_of(bed).state.restore(data / "pulsarium.db")


async def test_messages_that_are_not_in_memory(either: Bed, tmp_path: Path) -> None:
    """Messages that are restored in memory lie in a temporary file. Another snapshot reads them from there."""
    wire = await fill(either)
    state = lab_of(either).state
    await state.snapshot(tmp_path / "1")
    await state.restore(tmp_path / "1")
    await state.snapshot(tmp_path / "2")
    await state.reset()
    await state.restore(tmp_path / "2")
    await said(wire)
    assert await drain(wire, count=2) == [b"1", b"3"]


async def test_clients_that_publish_survive_resets_and_restores(either: Bed, tmp_path: Path) -> None:
    """Clients publish meanwhile. Each opens its producer again when the broker closes it."""
    state, stop = lab_of(either).state, trio.Event()
    last: dict[str, Position] = {}

    async def opened(wire: Wire, topic: str) -> None:
        while (await wire.request(Type.PRODUCER, topic=topic, producer_id=0)).type == Type.ERROR:
            pass  # the broker closed the topic while it was being opened

    async def publish(topic: str) -> None:
        """Publish until a message that was sent after the last restore has its receipt."""
        wire = await either.connect()
        await opened(wire, topic)
        while topic not in last:
            stopped = stop.is_set()
            await wire.write(wire.sends(plain(b"x")))
            while True:
                command = (await wire.next()).command
                if command.type == Type.CLOSE_PRODUCER:
                    wire.inbox.clear()
                    await opened(wire, topic)
                    break
                receipt = command.send_receipt
                # The receipt of an earlier message comes late when two resets closed the producer twice.
                if receipt.sequence_id == wire.sequences[0] - 1:
                    if stopped:
                        last[topic] = position_of(receipt.message_id)
                    break

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(publish, f"{TOPIC}{number}")
        for number in range(5):
            await trio.sleep(0.01)
            await state.snapshot(tmp_path / "s")
            await (state.reset() if number % 2 else state.restore(tmp_path / "s"))
        stop.set()
    assert {topic: either.topic(topic).ledger.last_confirmed for topic in last} == last
    assert len(last) == 3


async def test_a_reset_waits_for_commits_in_flight(tmp_path: Path) -> None:
    """A commit that ends after the reset would write old data into the new state."""
    storage = HeldStorage()
    async with serving(storage=storage) as bed:
        wire, state = await bed.connect(), lab_of(bed).state
        await wire.producer()
        storage.holding = True
        await wire.write(wire.sends(plain(b"1")))
        await wire.alive()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(state.reset)
            await trio.testing.wait_all_tasks_blocked()
            assert topics(bed) == [TOPIC]
            storage.release()
        assert topics(bed) == []
        assert not [path for path in storage.metadata if path.startswith("/managed-ledgers/")]
        assert storage.entries == {}
        await said(wire)
        await wire.producer()
        await wire.publish(plain(b"2"))
        assert await drain(wire, count=1) == [b"2"]


async def test_a_compacted_ledger_whose_name_is_on_its_way_to_the_store(either: Bed, tmp_path: Path) -> None:
    wire, state = await either.connect(), lab_of(either).state
    await wire.producer()
    await wire.publish(*[plain(b"%d" % number, partition_key="k") for number in range(5)])

    def compaction() -> CompactionRecord:
        topic = either.topic()
        topic.compaction.trigger()
        return topic.log.compaction

    record = compaction()
    while record.cursor is None or not record.cursor.properties:
        await trio.lowlevel.checkpoint()
    await state.snapshot(tmp_path / "s")
    await state.restore(tmp_path / "s")
    compacted = compaction().compacted
    assert isinstance(compacted, CompactedLedger)
    assert compacted.ledger.count == 1


async def test_a_seed_that_was_begun_comes_before_a_reset() -> None:
    storage = HeldStorage()
    async with serving(storage=storage) as bed:
        state = lab_of(bed).state
        seed = '{"topics": [{"name": "t", "subscriptions": [{"name": "late", "position": "latest"}]}]}'
        storage.holding = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(state.seed_text, seed)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(state.reset)
            await trio.testing.wait_all_tasks_blocked()
            storage.release()
        assert topics(bed) == []


def damaged(content: bytes) -> dict[str, bytes]:
    middle = content.index(b"needle")
    return {
        "none of ours": b"SQLite format 3\x00" + b"\x00" * 5000,
        "text": b"hello",
        "empty": b"",
        "cut": content[: len(content) // 2],
        "a bit": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
    }


@pytest.mark.parametrize("kind", ["none of ours", "text", "empty", "cut", "a bit", "absent"])
async def test_a_file_that_is_no_snapshot_changes_nothing(either: Bed, tmp_path: Path, kind: str) -> None:
    wire = await fill(either)
    await wire.publish(plain(b"needle"))
    await said(wire)
    state, path = lab_of(either).state, tmp_path / "s"
    await state.snapshot(path)
    content = path.read_bytes()
    path.unlink()
    if kind != "absent":
        path.write_bytes(damaged(content)[kind])
    await wire.publish(plain(b"5"))
    await said(wire)
    with pytest.raises(StorageError, match=r"not a snapshot|damaged|no such file"):
        await state.restore(path)
    (topic,) = either.broker.topics.loaded.values()
    assert sum(len(each.consumers) for each in topic.subscriptions.values()) == 1  # the consumer stays connected
    other = await either.connect()
    assert await drain(other, "fresh", count=5) == [b"1", b"2", b"3", b"needle", b"5"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/counters/ledger-id", b"many"),
        ("/counters/ledger-id", b"9999999999"),  # no id would be left for new ledgers
        ("/admin/policies/tenant", b"\xff{"),
        ("/admin/policies/tenant/namespace", b"[]"),
        ("/schemas/public/default/t/0", b"\xff\xff"),
        ("/managed-ledgers/public/default/persistent/t", b"\xff\xff"),
        ("/managed-ledgers/public/default/persistent/t/sub", b"\xff\xff"),
    ],
)
async def test_metadata_that_nobody_can_read_change_nothing(
    either: Bed, tmp_path: Path, path: str, value: bytes
) -> None:
    wire = await fill(either)
    snapshot.write(tmp_path / "s", {path: value}, (), {})
    with pytest.raises(StorageError, match="s is damaged: its metadata cannot be read"):
        await lab_of(either).state.restore(tmp_path / "s")
    assert await said(wire) == []  # no client was disconnected
    assert await drain(await either.connect(), "fresh", count=3) == [b"1", b"2", b"3"]


async def test_a_snapshot_that_cannot_be_written(either: Bed, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot write"):
        await lab_of(either).state.snapshot(tmp_path / "none" / "s")
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


async def test_settings_that_were_changed_while_running(either: Bed, tmp_path: Path) -> None:
    dynamic, config, state = either.broker.cluster.dynamic, either.broker.config, lab_of(either).state
    dynamic.put("defaultNumPartitions", "3")
    await state.snapshot(tmp_path / "s")
    await state.reset()
    assert (dynamic.values, config.defaultNumPartitions) == ({}, Config().defaultNumPartitions)
    await state.restore(tmp_path / "s")
    assert (dynamic.values, config.defaultNumPartitions) == ({"defaultNumPartitions": "3"}, 3)


async def test_a_broker_that_begins_with_a_snapshot_and_a_seed(tmp_path: Path) -> None:
    async with serving() as bed:
        await fill(bed)
        await lab_of(bed).state.snapshot(tmp_path / "s")
    seed = tmp_path / "seed.json"
    seed.write_text('{"topics": [{"name": "more"}]}')
    async with open_core(ServeOptions(restore=tmp_path / "s", seed=seed)) as broker:
        assert broker.topics.names("public/default") == ["persistent://public/default/more", TOPIC]
    for options in (ServeOptions(restore=seed), ServeOptions(seed=tmp_path / "s")):
        with pytest.RaisesGroup(ConfigError, flatten_subgroups=True, allow_unwrapped=True):
            async with open_core(options):
                pass
