"""PRODUCER, SEND, CLOSE_PRODUCER."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.wire import TOPIC, Bed, Earliest, Shared, Type, Wire, batch_of, frame_of, plain, serving

JAVA = "org.apache.pulsar.broker.service.BrokerServiceException$"
TAKEN = f"{JAVA}NamingException: Producer with name 'p' is already connected to topic '{TOPIC}'"
NO_SEQUENCE = 2**64 - 1


async def ask(wire: Wire, producer_id: int = 0, topic: str = TOPIC, **fields: Any) -> tuple[int, str]:
    """Code and text of a refused PRODUCER."""
    return await wire.refused(Type.PRODUCER, topic=topic, producer_id=producer_id, **fields)


# PRODUCER: names


@pytest.mark.req("P-02")
async def test_names_are_made_for_those_without(bed: Bed, wire: Wire) -> None:
    other = await bed.connect()
    names = [(await w.producer(producer_id=i)).producer_name for w in (wire, other) for i in range(3)]
    assert names == [f"standalone-0-{i}" for i in range(6)]


@pytest.mark.req("P-05")
async def test_what_a_new_producer_is_told(wire: Wire) -> None:
    success = await wire.producer(producer_name="mine")
    assert success.producer_name == "mine"
    assert success.producer_ready
    assert success.last_sequence_id == -1
    assert success.HasField("schema_version")
    assert success.schema_version == b""
    assert not success.HasField("topic_epoch")


@pytest.mark.req("P-02")
async def test_a_name_is_taken_once_on_a_connection_and_nobody_is_asked(wire: Wire) -> None:
    await wire.producer(producer_name="p")
    assert await ask(wire, 1, producer_name="p", epoch=5) == (pb.ProducerBusy, TAKEN)
    await wire.quiet()
    await wire.producer(f"{TOPIC}2", 2, producer_name="p")


@pytest.mark.req("P-02")
@pytest.mark.parametrize("epoch", [0, 1, 100])
async def test_a_living_owner_keeps_its_name(bed: Bed, wire: Wire, epoch: int) -> None:
    await wire.producer(producer_name="p")
    other = await bed.connect()
    await other.write(other.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0, producer_name="p", epoch=epoch))
    await wire.expect(Type.PING)
    await other.quiet(4.9)
    await wire.send(Type.PONG)
    refused = await other.reply(1)
    assert (refused.error.error, refused.error.message) == (pb.ProducerBusy, TAKEN)
    await wire.publish(plain(b"still mine"))


@pytest.mark.req("P-02", "W-12")
async def test_a_dead_owner_loses_its_name_after_five_seconds(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="p")
    other = await bed.connect()
    started = bed.broker.clock.monotonic()
    success = await other.producer(producer_name="p")
    assert 5 <= bed.broker.clock.monotonic() - started < 5.5
    assert success.producer_ready
    assert [received.command.type for received in await wire.closed()] == [Type.PING]
    await other.publish(plain(b"mine now"))


@pytest.mark.req("P-02")
async def test_an_owner_that_leaves_while_it_is_asked(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="p")
    other = await bed.connect()
    await other.write(other.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0, producer_name="p"))
    await wire.expect(Type.PING)
    await wire.aclose()
    assert (await other.reply(1, within=1)).type == Type.PRODUCER_SUCCESS


@pytest.mark.req("P-02")
async def test_a_newcomer_that_leaves_while_the_owner_is_asked(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="p")
    other = await bed.connect()
    await other.write(other.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0, producer_name="p"))
    await wire.expect(Type.PING)
    await other.aclose()
    await wire.closed()  # it never answered
    third = await bed.connect()
    assert (await third.producer(producer_name="p")).producer_ready


@pytest.mark.req("P-02")
async def test_without_a_liveness_check_the_owner_keeps_its_name(autojump_clock: object) -> None:
    async with serving(Config(connectionLivenessCheckTimeoutMillis=0)) as bed:
        wire, other = await bed.connect(), await bed.connect()
        await wire.producer(producer_name="p")
        assert await ask(other, producer_name="p") == (pb.ProducerBusy, TAKEN)
        await wire.quiet()


# PRODUCER: ids


@pytest.mark.req("P-03")
async def test_a_living_producer_id_is_answered_again(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="p")
    for fields in ({}, {"producer_name": "q"}, {"topic": f"{TOPIC}2"}, {"producer_name": "p", "epoch": 3}):
        assert (await wire.producer(**fields)).producer_name == "p"
    assert bed.broker.topics.names("public/default") == [TOPIC]


@pytest.mark.req("P-03")
async def test_a_producer_id_that_is_being_created_is_refused(wire: Wire) -> None:
    both = [wire.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0, producer_name=name) for name in "pq"]
    await wire.write(b"".join(both))
    second = await wire.expect(Type.ERROR)
    assert (second.request_id, second.error) == (2, pb.ServiceNotReady)
    assert second.message == "Producer is already present on the connection"
    assert (await wire.expect(Type.PRODUCER_SUCCESS)).producer_name == "p"


@pytest.mark.req("P-03")
async def test_an_id_is_free_again_after_a_failure_and_after_closing(wire: Wire) -> None:
    await wire.producer(producer_name="p")
    await ask(wire, 1, producer_name="p")
    await wire.producer(producer_id=1, producer_name="q")
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=1)
    assert (await wire.producer(producer_id=1, producer_name="r")).producer_name == "r"


# PRODUCER: what it may not be


@pytest.mark.req("P-01")
@pytest.mark.parametrize("topic", ["http://public/default/t", "persistent://public/t", ""])
async def test_a_topic_name_that_is_none(wire: Wire, topic: str) -> None:
    code, text = await ask(wire, topic=topic)
    assert code == pb.InvalidTopicName
    assert text.startswith("Invalid topic name: ")


@pytest.mark.req("P-01")
async def test_a_namespace_that_is_not_there(wire: Wire) -> None:
    code, text = await ask(wire, topic="persistent://public/none/t")
    assert code == pb.ServiceNotReady
    assert "not served by this instance" in text


@pytest.mark.req("P-01", "B-40")
async def test_a_topic_that_may_not_be_created(autojump_clock: object) -> None:
    async with serving(Config(allowAutoTopicCreation=False)) as bed:
        code, text = await ask(await bed.connect())
        assert (code, text) == (pb.TopicNotFound, f"Topic not found {TOPIC}")
        assert not bed.broker.topics.exists(TopicName.parse(TOPIC))


@pytest.mark.req("B-36")
async def test_the_parent_of_partitions_takes_no_producer(bed: Bed, wire: Wire) -> None:
    bed.broker.topics.create_partitions(TopicName.parse(TOPIC), 2)
    code, text = await ask(wire)
    assert code == pb.NotAllowedError
    assert text == f"Found partitioned metadata for non-partitioned topic: {TOPIC}"
    code, _ = await ask(wire, topic=f"{TOPIC}-partition-2")
    assert code == pb.TopicNotFound
    await wire.producer(f"{TOPIC}-partition-1")


@pytest.mark.req("B-36")
async def test_a_partition_without_its_parent_is_refused(wire: Wire) -> None:
    code, text = await ask(wire, topic=f"{TOPIC}-partition-0")
    assert code == pb.NotAllowedError
    assert "partition" in text.lower()


@pytest.mark.req("P-01")
async def test_there_may_be_only_so_many(autojump_clock: object) -> None:
    async with serving(Config(maxProducersPerTopic=1)) as bed:
        wire = await bed.connect()
        await wire.producer()
        code, text = await ask(wire, 1)
        assert code == pb.ProducerBusy
        assert "reached max producers limit" in text
        await wire.producer(f"{TOPIC}2", 2)


@pytest.mark.req("P-09")
async def test_metadata_may_be_so_large(wire: Wire) -> None:
    await wire.producer(metadata=[{"key": "k", "value": "v" * 1023}])
    code, text = await ask(wire, 1, metadata=[{"key": "k", "value": "v" * 600}, {"key": "l", "value": "v" * 423}])
    assert (code, text) == (pb.MetadataError, "metadata has a max size of 1 Kb")


@pytest.mark.req("P-08")
async def test_an_initial_subscription_begins_with_the_first_message(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    await wire.publish(plain(b"before"))
    for producer_id in (1, 2):
        await wire.producer(producer_id=producer_id, initial_subscription_name="init")
    await wire.producer(producer_id=3, initial_subscription_name="")
    assert list(bed.broker.topics.find(TopicName.parse(TOPIC)).subscriptions) == ["init"]
    await wire.subscribe(name="init")
    await wire.flow()
    assert await wire.payloads(1) == [b"before"]


@pytest.mark.req("P-08")
async def test_an_initial_subscription_may_not_be_created(autojump_clock: object) -> None:
    async with serving(Config(allowAutoSubscriptionCreation=False)) as bed:
        wire = await bed.connect()
        code, text = await ask(wire, initial_subscription_name="init")
        assert code == pb.NotAllowedError
        assert "initial subscription" in text
        await wire.producer()


# SEND


async def test_receipts_come_in_order_with_their_positions(wire: Wire) -> None:
    await wire.producer()
    await wire.write(wire.sends(*[plain(b"%d" % i) for i in range(100)]))
    receipts = [await wire.expect(Type.SEND_RECEIPT) for _ in range(100)]
    assert [receipt.sequence_id for receipt in receipts] == list(range(100))
    assert [receipt.message_id.entryId for receipt in receipts] == list(range(100))
    assert len({receipt.message_id.ledgerId for receipt in receipts}) == 1


async def test_sequence_ids_are_the_clients_business(wire: Wire) -> None:
    await wire.producer()
    for sequence_id in (5, 3, 3, 2**63):
        await wire.send(Type.SEND, plain(b"x"), producer_id=0, sequence_id=sequence_id)
        assert (await wire.expect(Type.SEND_RECEIPT)).sequence_id == sequence_id


@pytest.mark.parametrize(("highest", "answered"), [(12, 12), (10, 10), (9, NO_SEQUENCE), (None, NO_SEQUENCE)])
async def test_the_highest_sequence_id_comes_back(wire: Wire, highest: int | None, answered: int) -> None:
    await wire.producer()
    fields = {} if highest is None else {"highest_sequence_id": highest}
    entry = batch_of(b"a", b"b", b"c")
    await wire.send(Type.SEND, entry, producer_id=0, sequence_id=10, num_messages=3, **fields)
    receipt = await wire.expect(Type.SEND_RECEIPT)
    assert (receipt.sequence_id, receipt.highest_sequence_id) == (10, answered)


@pytest.mark.parametrize("num_messages", [2, 5, 0, -1, 3])
async def test_nobody_counts_the_messages_of_a_batch(wire: Wire, num_messages: int) -> None:
    await wire.producer()
    await wire.subscribe()
    await wire.flow()
    await wire.publish(batch_of(b"a", b"b", b"c"), num_messages=num_messages)
    await wire.expect(Type.MESSAGE)


@pytest.mark.req("W-02")
async def test_a_bad_checksum_is_refused_and_the_producer_stays(wire: Wire) -> None:
    await wire.producer()
    broken = plain(b"abc")[:-1] + b"x"
    await wire.write(wire.sends(plain(b"1"), broken, plain(b"2")))
    error = await wire.expect(Type.SEND_ERROR)
    assert (error.producer_id, error.sequence_id, error.error) == (0, 1, pb.ChecksumError)
    assert [position.entry_id for position in await wire.receipts(2)] == [0, 1]


@pytest.mark.req("W-02")
@pytest.mark.parametrize(
    "entry", [plain(b"no checksum", checksum=False), b"\0\0\0\0empty metadata", b"\0\0\0\3xyzgarbage", b"ab"]
)
async def test_entries_are_opaque(wire: Wire, entry: bytes) -> None:
    """Only their checksum is looked at, where they have one."""
    await wire.producer()
    await wire.publish(entry)


@pytest.mark.req("W-02")
@pytest.mark.parametrize("entry", [b"", b"\x0e", b"\x0e\x01\0\0"])
async def test_a_send_without_a_payload_closes(wire: Wire, entry: bytes) -> None:
    await wire.producer()
    await wire.write(wire.sends(entry))
    assert await wire.closed() == []


async def test_a_producer_that_was_never_there_closes(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    await wire.producer(producer_id=1)
    await wire.write(wire.sends(plain(b"x"), producer_id=7))
    assert await wire.closed() == []
    assert "unknown producer 7" in caplog.text


async def test_a_producer_its_client_closed_closes(wire: Wire) -> None:
    await wire.producer()
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    await wire.write(wire.sends(plain(b"x")))
    assert await wire.closed() == []


@pytest.mark.req("B-50")
async def test_sends_to_a_producer_that_the_broker_closed_are_dropped(bed: Bed, wire: Wire) -> None:
    """The client has not read the CLOSE_PRODUCER yet; it will send them again."""
    await wire.producer(producer_name="p")
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    closed = await wire.expect(Type.CLOSE_PRODUCER)
    assert (closed.producer_id, closed.request_id) == (0, 2**64 - 1)
    assert not closed.HasField("assignedBrokerServiceUrl")
    await wire.write(wire.sends(plain(b"x"), plain(b"y")))
    await wire.alive()
    await wire.producer(producer_name="p")
    assert [position.entry_id for position in await wire.publish(plain(b"x"), plain(b"y"))] == [0, 1]


@pytest.mark.req("B-50")
async def test_sends_are_dropped_for_as_long_as_a_keep_alive(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await wire.expect(Type.CLOSE_PRODUCER)
    await wire.quiet(29)
    await wire.write(wire.sends(plain(b"x")))
    await wire.alive()
    await wire.expect(Type.PING, within=2)
    await wire.send(Type.PONG)
    await wire.quiet(2)
    await wire.write(wire.sends(plain(b"x")))
    assert await wire.closed() == []


async def test_messages_for_a_shadow_topic_or_a_transaction_are_refused(wire: Wire) -> None:
    await wire.producer()
    await wire.send(
        Type.SEND, plain(b"x"), producer_id=0, sequence_id=1, message_id={"ledgerId": 1, "entryId": 1}
    )
    error = await wire.expect(Type.SEND_ERROR)
    assert (error.sequence_id, error.error) == (1, pb.NotAllowedError)
    await wire.send(
        Type.SEND, plain(b"x"), producer_id=0, sequence_id=2, txnid_most_bits=0, txnid_least_bits=1
    )
    error = await wire.expect(Type.SEND_ERROR)
    assert (error.sequence_id, error.error, error.message) == (
        2,
        pb.NotAllowedError,
        "Transaction buffer disable!",
    )
    assert await wire.publish(plain(b"x"))


# commits


async def test_receipts_wait_for_their_commit(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        store.holding = True
        await wire.write(wire.sends(plain(b"a"), plain(b"b")))
        await wire.quiet()
        await wire.write(wire.sends(plain(b"c")))
        await wire.quiet()
        store.release(1)
        assert [position.entry_id for position in await wire.receipts(2)] == [0, 1]
        await wire.quiet()
        store.release()
        assert [position.entry_id for position in await wire.receipts(1)] == [2]


async def test_pongs_overtake_receipts(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        store.holding = True
        await wire.write(wire.sends(plain(b"a")) + frame_of(Type.PING))
        await wire.expect(Type.PONG)
        store.release()
        await wire.receipts(1)


async def test_a_failed_commit_is_told_and_its_entries_are_nowhere(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        await wire.flow()
        store.holding = True
        await wire.write(wire.sends(plain(b"lost")))
        await wire.quiet()
        await wire.write(wire.sends(plain(b"behind it")))  # its commit is on its way already
        await wire.quiet()
        store.fail()
        error = await wire.expect(Type.SEND_ERROR)
        assert (error.sequence_id, error.error) == (0, pb.PersistenceError)
        closed = {(await wire.next()).command.type for _ in range(2)}
        assert closed == {Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER}  # the client sends again what has no receipt
        store.release()
        await wire.write(wire.sends(plain(b"too late")))
        await wire.alive()
        await wire.producer()
        await wire.subscribe()
        await wire.flow()
        last = await wire.ask(Type.GET_LAST_MESSAGE_ID, consumer_id=0)
        assert last.last_message_id.entryId == 2**64 - 1
        await wire.publish(plain(b"again"))
        assert await wire.payloads(1) == [b"again"]
        await wire.quiet()


async def test_a_topic_whose_commit_failed_goes_on_when_it_is_loaded_again(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.publish(plain(b"kept"))
        store.holding = True
        await wire.write(wire.sends(plain(b"lost")))
        await wire.quiet()
        store.fail()
        await wire.expect(Type.SEND_ERROR)
        await wire.expect(Type.CLOSE_PRODUCER)
        store.release()
        await wire.producer()
        await wire.subscribe(initialPosition=Earliest)
        await wire.flow()
        assert await wire.payloads(1) == [b"kept"]
        await wire.publish(plain(b"next"))
        assert await wire.payloads(1) == [b"next"]
        await wire.quiet()


@pytest.mark.req("B-13")
async def test_a_producer_is_there_when_its_topic_is_kept(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        store.holding = True
        await wire.write(wire.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0))
        await wire.quiet()
        store.release()
        await wire.expect(Type.PRODUCER_SUCCESS)


# CLOSE_PRODUCER


async def test_closing_twice_and_closing_what_never_was(wire: Wire) -> None:
    await wire.producer()
    for producer_id in (0, 0, 99):
        await wire.ask(Type.CLOSE_PRODUCER, producer_id=producer_id)


async def test_a_close_comes_after_the_receipts(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        store.holding = True
        await wire.write(wire.sends(plain(b"a"), plain(b"b")))
        await wire.quiet()
        await wire.write(wire.numbered(Type.CLOSE_PRODUCER, producer_id=0) + frame_of(Type.PING))
        await wire.expect(Type.PONG)
        await wire.quiet()
        store.release()
        await wire.receipts(2)
        await wire.expect(Type.SUCCESS)


async def test_a_close_behind_its_producer(wire: Wire) -> None:
    create = wire.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0)
    await wire.write(create + wire.numbered(Type.CLOSE_PRODUCER, producer_id=0))
    assert (await wire.expect(Type.SUCCESS)).request_id == 2
    assert (await wire.expect(Type.PRODUCER_SUCCESS)).request_id == 1


async def test_a_send_behind_its_producer_closes(wire: Wire) -> None:
    await wire.write(wire.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0) + wire.sends(plain(b"x")))
    await wire.closed()


@pytest.mark.req("B-50", "W-04", "W-11")
@pytest.mark.parametrize("version", [4, 5])
async def test_only_clients_since_v5_are_told_of_a_close(bed: Bed, version: int) -> None:
    old = await bed.connect(version)
    await old.producer()
    await old.subscribe(type=Shared)
    await old.subscribe(type=Shared, consumer_id=1)
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    if version < 5:
        assert await old.closed() == []
    else:
        closed = sorted([(await old.next()).command.type for _ in range(3)])
        assert closed == [Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER, Type.CLOSE_CONSUMER]
        await old.alive()
    other = await bed.connect()
    assert await other.producer()
    assert (await other.publish(plain(b"x")))[0] == Position(other_ledger(bed), 0)


def other_ledger(bed: Bed) -> int:
    topic = bed.broker.topics.find(TopicName.parse(TOPIC))
    return topic.ledger.last_confirmed.ledger_id  # type: ignore[attr-defined,no-any-return]


# access modes

Mode = pb.ProducerAccessMode


async def producer(wire: Wire, name: str, mode: pb.ProducerAccessMode, **fields: Any) -> pb.CommandProducerSuccess:
    return await wire.producer(producer_name=name, producer_access_mode=mode, **fields)


@pytest.mark.req("P-04")
async def test_shared_keeps_exclusive_out_and_the_other_way_round(bed: Bed, wire: Wire) -> None:
    other = await bed.connect()
    await producer(wire, "sh", pb.Shared)
    code, text = await ask(other, producer_access_mode=pb.Exclusive)
    assert (code, text) == (pb.ProducerFenced, f"{JAVA}ProducerFencedException: Topic has existing shared producers")
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    assert (await producer(other, "ex", pb.Exclusive)).topic_epoch == 0
    code, text = await ask(wire, 1)
    existing = "Topic has an existing exclusive producer: ex"
    assert (code, text) == (pb.ProducerBusy, f"{JAVA}ProducerBusyException: {existing}")
    code, text = await ask(wire, 1, producer_access_mode=pb.Exclusive)
    assert (code, text) == (pb.ProducerFenced, f"{JAVA}ProducerFencedException: {existing}")


@pytest.mark.req("P-04", "P-05")
async def test_waiters_take_over_in_order(bed: Bed, wire: Wire) -> None:
    await producer(wire, "first", pb.Exclusive)
    waiters = [await bed.connect() for _ in range(2)]
    for number, waiter in enumerate(waiters):
        success = await producer(waiter, f"w{number}", pb.WaitForExclusive)
        assert not success.producer_ready
        assert not success.HasField("topic_epoch")
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    success = await waiters[0].expect(Type.PRODUCER_SUCCESS)
    assert (success.request_id, success.producer_ready, success.topic_epoch) == (1, True, 1)
    await waiters[0].publish(plain(b"mine"))
    await waiters[1].quiet()
    await waiters[0].aclose()
    success = await waiters[1].expect(Type.PRODUCER_SUCCESS)
    assert (success.producer_name, success.topic_epoch) == ("w1", 2)


@pytest.mark.req("P-04")
async def test_a_waiter_that_sends_is_disconnected(bed: Bed, wire: Wire) -> None:
    await producer(wire, "first", pb.Exclusive)
    waiter = await bed.connect()
    await producer(waiter, "w", pb.WaitForExclusive)
    await waiter.write(waiter.sends(plain(b"too early")))
    assert await waiter.closed() == []
    await wire.publish(plain(b"mine"))


@pytest.mark.req("P-04")
async def test_a_waiter_keeps_shared_producers_out(bed: Bed, wire: Wire) -> None:
    waiter, third = await bed.connect(), await bed.connect()
    await producer(wire, "pa", pb.Shared)
    assert not (await producer(waiter, "pb", pb.WaitForExclusive)).producer_ready
    code, text = await ask(third)
    assert code == pb.ProducerBusy
    assert text == f"{JAVA}ProducerBusyException: Topic has an existing exclusive producer: null"
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    assert (await waiter.expect(Type.PRODUCER_SUCCESS)).topic_epoch == 0


@pytest.mark.req("P-04")
async def test_alone_nobody_waits(wire: Wire) -> None:
    success = await producer(wire, "w", pb.WaitForExclusive)
    assert (success.producer_ready, success.topic_epoch) == (True, 0)


@pytest.mark.req("P-04")
async def test_fencing_throws_everybody_out_without_a_word(bed: Bed, wire: Wire) -> None:
    b, c, d = [await bed.connect() for _ in range(3)]
    await producer(wire, "a", pb.Shared)
    await producer(b, "b", pb.Shared)
    assert (await producer(c, "c", pb.ExclusiveWithFencing)).topic_epoch == 0
    await wire.quiet()
    await wire.write(wire.sends(plain(b"fenced")))
    assert await wire.closed() == []
    assert not (await producer(b, "b2", pb.WaitForExclusive, producer_id=1)).producer_ready
    assert (await producer(d, "d", pb.ExclusiveWithFencing)).topic_epoch == 1
    error = await b.expect(Type.ERROR)
    assert (error.request_id, error.error) == (2, pb.ProducerFenced)
    assert error.message == f"{JAVA}ProducerFencedException: Fenced out"
    await c.quiet()


@pytest.mark.req("P-04", "P-05")
async def test_a_stale_epoch_fences_the_owner_all_the_same(bed: Bed, wire: Wire) -> None:
    other = await bed.connect()
    await producer(wire, "a", pb.Exclusive)
    await producer(other, "b", pb.ExclusiveWithFencing)
    code, text = await ask(wire, 1, producer_access_mode=pb.ExclusiveWithFencing, topic_epoch=0)
    assert code == pb.ProducerFenced
    moved = "Topic epoch has already moved. Current epoch: 1, Producer epoch: 0"
    assert text == f"{JAVA}ProducerFencedException: {moved}"
    await other.write(other.sends(plain(b"x")))
    await other.closed()
    assert (await producer(wire, "c", pb.Exclusive, producer_id=2)).topic_epoch == 2


@pytest.mark.req("P-05", "B-50")
async def test_an_owner_comes_back_with_its_epoch(bed: Bed, wire: Wire) -> None:
    other = await bed.connect()
    assert (await producer(wire, "a", pb.Exclusive)).topic_epoch == 0
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await wire.expect(Type.CLOSE_PRODUCER)
    assert (await producer(wire, "a", pb.Exclusive, topic_epoch=0)).topic_epoch == 0
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    assert (await producer(other, "b", pb.Exclusive)).topic_epoch == 1
    await other.ask(Type.CLOSE_PRODUCER, producer_id=0)
    code, _ = await ask(wire, producer_access_mode=pb.Exclusive, topic_epoch=0)
    assert code == pb.ProducerFenced


@pytest.mark.req("P-05", "B-13")
async def test_the_epoch_outlives_the_broker(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        for epoch in range(3):
            wire = await bed.connect()
            assert (await producer(wire, "a", pb.Exclusive)).topic_epoch == epoch
            await wire.aclose()
    async with serving(storage=store) as bed:
        assert (await producer(await bed.connect(), "a", pb.Exclusive)).topic_epoch == 3


# non-persistent topics

LOOSE = "non-persistent://public/default/t"


@pytest.mark.req("B-37")
async def test_non_persistent_messages_all_have_one_id(wire: Wire) -> None:
    await wire.producer(LOOSE)
    assert await wire.publish(plain(b"a"), plain(b"b")) == [Position(0, 0)] * 2


@pytest.mark.req("W-04")
async def test_a_client_that_cannot_take_a_batch_does_not_take_its_publisher_along(bed: Bed, wire: Wire) -> None:
    for topic in (TOPIC, LOOSE):
        old = await bed.connect(3)
        await old.subscribe(topic)
        await old.flow()
        await wire.producer(topic, producer_id=len(topic))
        await wire.publish(batch_of(b"a", b"b"), producer_id=len(topic))
        assert await old.closed() == []
        await wire.publish(plain(b"c"), producer_id=len(topic))
