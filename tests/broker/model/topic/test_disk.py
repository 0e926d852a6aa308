"""Topics whose disk is full, or whose entries are damaged."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pulsarium.broker.model.compaction.record import LEDGER_PROPERTY
from pulsarium.broker.model.errors import PersistenceError
from pulsarium.broker.storage import committer
from pulsarium.broker.storage.database import DATABASE_NAME
from pulsarium.broker.storage.place import NO_ROOM
from pulsarium.broker.storage.sqlite import SqliteStorage
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.damaged import forget
from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.wire import TOPIC, Cumulative, Earliest, Shared, plain, serving

OTHER = "persistent://public/default/other"


async def test_a_full_disk_takes_no_messages_and_all_else_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe(type=Shared)
        await wire.publish(plain(b"a"), plain(b"b"))
        with monkeypatch.context() as patched:
            patched.setattr(SqliteStorage, "refusal", NO_ROOM)
            await wire.write(wire.sends(plain(b"c")))
            refused = await wire.expect(pb.BaseCommand.SEND_ERROR)
            assert refused.error == pb.PersistenceError
            assert "almost full" in refused.message
            code, _ = await wire.refused(pb.BaseCommand.PRODUCER, topic=TOPIC, producer_id=1)
            assert code == pb.PersistenceError
            await wire.flow()
            found = await wire.messages(2)
            await wire.ack(*[message.position for message in found])
            await wire.subscribe(name="new", consumer_id=1, type=Shared)
        await wire.publish(plain(b"d"))
        assert await wire.payloads(1) == [b"d"]


async def test_a_data_directory_that_is_moved_away_takes_no_messages_until_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "PLACE_SECONDS", 0)
    data, away = tmp_path / "data", tmp_path / "away"
    async with serving(data=data) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe(type=Shared)
        await wire.publish(plain(b"a"))
        data.rename(away)
        await wire.write(wire.sends(plain(b"lost")))
        refused = await wire.expect(pb.BaseCommand.SEND_ERROR)
        assert refused.error == pb.PersistenceError
        again = await bed.connect()
        code, text = await again.refused(pb.BaseCommand.PRODUCER, topic=TOPIC, producer_id=1)
        assert code == pb.PersistenceError
        assert text.endswith(f"The broker refuses messages: {data / DATABASE_NAME} is gone")
        away.rename(data)
        bed.broker.cluster.storage.settle()
        await again.producer(producer_id=1)
        await again.publish(plain(b"b"), producer_id=1)
    async with serving(data=data) as bed:
        wire = await bed.connect()
        await wire.subscribe(type=Shared)
        await wire.flow()
        assert await wire.payloads(2) == [b"a", b"b"]


@pytest.mark.parametrize("count_only", [False, True], ids=["a row is missing", "a row counts one less"])
async def test_a_topic_whose_entries_are_missing_is_refused_and_stays_as_it_is(
    tmp_path: Path, count_only: bool
) -> None:
    """The broker still serves other topics, but must not go on with the remaining entries of the damaged topic."""
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        for producer_id, topic in enumerate((TOPIC, OTHER)):
            await wire.producer(topic, producer_id=producer_id)
            await wire.subscribe(topic, consumer_id=producer_id)
        for number in range(3):  # each message is a row
            for producer_id in range(2):
                await wire.publish(plain(b"%d" % number), producer_id=producer_id)
    async with serving(data=tmp_path) as bed:  # closes the ledgers, so that their sizes are stored
        wire = await bed.connect()
        for producer_id, topic in enumerate((TOPIC, OTHER)):
            await wire.producer(topic, producer_id=producer_id)
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as connection:
        ledger = connection.execute("SELECT min(key) >> 32 FROM run").fetchone()[0]
    forget(tmp_path, ledger, 1, count_only=count_only)
    for _ in range(2):  # two starts of the broker
        async with serving(data=tmp_path) as bed:
            wire = await bed.connect()
            for _ in range(2):
                code, text = await wire.refused(
                    pb.BaseCommand.SUBSCRIBE, topic=TOPIC, subscription="s", subType=Shared, consumer_id=0
                )
                assert code == pb.PersistenceError
                assert f"Topic {TOPIC} is damaged, and left as it is: ledger {ledger}: " in text
            await wire.subscribe(OTHER, name="all", consumer_id=1, initialPosition=Earliest)
            await wire.flow(consumer_id=1)
            assert await wire.payloads(3) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("query", ["", "?force=true"])
async def test_a_damaged_topic_can_be_deleted_and_made_anew(tmp_path: Path, query: str) -> None:
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe(type=Shared)
        positions = [(await wire.publish(plain(b"%d" % number)))[0] for number in range(3)]  # each message is a row
        await wire.ack(positions[0], positions[2])
        ledger = positions[0].ledger_id
    forget(tmp_path, ledger, 1)
    async with serving(data=tmp_path) as bed:
        topics, storage = bed.broker.topics, bed.broker.cluster.storage
        for _ in range(2):
            with pytest.raises(PersistenceError, match="is damaged"):
                topics.find(TopicName.parse(TOPIC))
        answer = await Rest(bed.broker).call("DELETE", f"{TOPICS}/t{query}")
        assert answer.status == 204
        assert not topics.exists(TopicName.parse(TOPIC))
        assert not [path for path in storage.load_metadata() if "persistent/t" in path or "cursor-ledgers" in path]
        assert storage.stored_runs(ledger) == []
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe(type=Shared)
        await wire.publish(plain(b"new"))
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.subscribe(type=Shared)
        await wire.flow()
        assert await wire.payloads(1) == [b"new"]


async def test_deleting_a_damaged_topic_trusts_no_number_that_a_consumer_wrote(tmp_path: Path) -> None:
    """A cursor stores the properties of an ACK. The compaction cursor stores the id of the compacted ledger there."""
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.producer(OTHER, producer_id=1)
        (other,) = await wire.publish(plain(b"precious"), producer_id=1)
        await wire.producer()
        await wire.subscribe()
        first, _ = [(await wire.publish(plain(b"%d" % number)))[0] for number in range(2)]  # each message is a row
        await wire.ack(first, type=Cumulative, properties=[{"key": LEDGER_PROPERTY, "value": other.ledger_id}])
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as connection, connection:
        connection.execute("DELETE FROM segment WHERE key = ?", (first.ledger_id << 32,))
    async with serving(data=tmp_path) as bed:
        assert (await Rest(bed.broker).call("DELETE", f"{TOPICS}/t")).status == 204
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.subscribe(OTHER, initialPosition=Earliest)
        await wire.flow()
        assert await wire.payloads(1) == [b"precious"]
