"""Members of a transaction, and its end."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.client import errors
from pulsarium.client.client import Client
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.options import ConsumerType, InitialPosition
from pulsarium.client.errors import PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.options import ProducerAccessMode
from pulsarium.client.producer.producer import Producer
from pulsarium.client.transaction.transaction import TransactionParts, TransactionState
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.consumer.started import data_of, received
from tests.client.hostile.clocks import on_both
from tests.client.hostile.played import TOPIC, saying, silence
from tests.client.in_process import InProcess, in_process
from tests.client.peer import Peer, Type
from tests.client.transaction.stage import coordinated

#: The client sends lost messages again, perhaps in the same transaction, and deduplication drops the copies.
CONFIG = Config(transactionCoordinatorEnabled=True, brokerDeduplicationEnabled=True)
WHERE = MessageId(1, 1)


def ends(asked: list[Any]) -> list[Any]:
    return [one for one in asked if one[0] in ("commit", "abort")]


@on_both
async def test_each_topic_and_subscription_is_registered_once_and_first() -> None:
    async with coordinated() as (told, played, client), client.create_producer("t") as producer:
        async with (
            client.subscribe("t", "s") as consumer,
            client.transaction() as txn,
            anyio.create_task_group() as tasks,
        ):
            for number in range(3):
                tasks.start_soon(lambda content: producer.send(content, txn=txn), b"%d" % number)
                tasks.start_soon(lambda at: consumer.acknowledge(at, txn=txn), MessageId(1, number))
        assert told.asked[2:4] in (
            [("partition", 1, TOPIC), ("subscription", 1, TOPIC, "s")],
            [("subscription", 1, TOPIC, "s"), ("partition", 1, TOPIC)],
        )
        assert told.asked[4:] == [("commit", 1)]
        kinds = [base.type for base in played.seen]
        assert kinds.index(Type.ADD_PARTITION_TO_TXN) < kinds.index(Type.SEND)
        assert kinds.index(Type.ADD_SUBSCRIPTION_TO_TXN) < kinds.index(Type.ACK)
        acks = [base.ack for base in played.seen if base.type == Type.ACK]
        assert {(ack.txnid_most_bits, ack.txnid_least_bits, ack.HasField("request_id")) for ack in acks} == {
            (0, 1, True)
        }
        assert txn.state() is TransactionState.COMMITTED


def of_release(release: str) -> Callable[[Peer, Any], Awaitable[None]]:
    """Return an answer to CONNECT."""
    connected: dict[str, Any] = {"server_version": f"Pulsar Server{release}", "protocol_version": 21}
    return lambda peer, _: peer.say(Type.CONNECTED, **connected)


@pytest.mark.parametrize(
    ("release", "access", "openings"),
    [
        ("3.0.7", ProducerAccessMode.Shared, [False, True]),
        ("3.0.7", ProducerAccessMode.Exclusive, [True]),  # another producer could get the access meanwhile
        ("4.0.7", ProducerAccessMode.Exclusive, [False]),
    ],
)
@on_both
async def test_a_producer_tells_brokers_before_3_2_of_its_first_transaction(
    release: str, access: ProducerAccessMode, openings: list[bool]
) -> None:
    async with coordinated() as (_, played, client):
        played.on[Type.CONNECT] = of_release(release)
        async with client.create_producer("t", batching_enabled=False, access_mode=access) as producer:
            await producer.send(b"outside")
            for _ in range(2):
                async with client.transaction() as txn:
                    await producer.submit(b"inside", txn=txn)
                    await producer.send(b"inside", txn=txn)
        assert [base.producer.txn_enabled for base in played.seen if base.type == Type.PRODUCER] == openings
        kinds = [base.type for base in played.seen if base.type in (Type.PRODUCER, Type.SEND)]
        assert kinds == [Type.PRODUCER, Type.SEND, *[Type.PRODUCER] * (len(openings) - 1), *[Type.SEND] * 4]


@on_both
async def test_a_canceled_first_message_of_a_transaction_repeats_none_of_those_before() -> None:
    async with coordinated() as (_, played, client):
        played.on[Type.CONNECT] = of_release("3.0.7")
        async with client.create_producer("t", batching_enabled=False) as producer:
            played.on[Type.SEND] = played.on[Type.CLOSE_PRODUCER] = silence
            outside = producer.send_nowait(b"outside")
            sent = await played.sent(Type.SEND)
            async with client.transaction() as txn:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(lambda: producer.send(b"inside", txn=txn))
                    closed = await played.sent(Type.CLOSE_PRODUCER)
                    tasks.cancel_scope.cancel()
                del played.on[Type.SEND], played.on[Type.CLOSE_PRODUCER]
                for body in (sent, closed):
                    await played.answer(played.connections[0], body)
                await outside.wait()
                await producer.send(b"after")
        assert [base.send.sequence_id for base in played.seen if base.type == Type.SEND] == [0, 1, 2]


@on_both
async def test_its_end_waits_for_what_is_under_way() -> None:
    async with coordinated() as (told, played, client), client.create_producer("t") as producer:
        held: list[tuple[Peer, Any]] = []

        async def hold(peer: Peer, body: Any) -> None:
            held.append((peer, body))

        played.on[Type.SEND] = hold
        async with anyio.create_task_group() as tasks:
            txn = await client.begin_transaction()
            await producer.submit(b"x", txn=txn)
            tasks.start_soon(txn.commit)
            await anyio.sleep(5)
            assert ends(told.asked) == []
            assert txn.state() is TransactionState.COMMITTING
            await played.answer(*held[0])
        assert ends(told.asked) == [("commit", 1)]


@on_both
async def test_a_transaction_with_a_failed_operation_is_not_committed() -> None:
    async with coordinated() as (told, played, client), client.subscribe("t", "s") as consumer:
        played.on[Type.ACK] = saying(Type.ACK_RESPONSE, consumer_id=0, error=pb.TransactionConflict, message="no")
        txn = await client.begin_transaction()
        with pytest.raises(errors.TransactionConflict):
            await consumer.acknowledge(WHERE, txn=txn)
        with pytest.raises(errors.TransactionHasOperationFailed):
            await txn.commit()
        assert ends(told.asked) == [("abort", 1)]
        assert txn.state() is TransactionState.ABORTED


@on_both
async def test_a_message_that_is_refused() -> None:
    async def refuse(peer: Peer, body: Any) -> None:
        error: dict[str, Any] = {"error": pb.NotAllowedError, "message": "Transaction buffer disable!"}
        await peer.say(Type.SEND_ERROR, producer_id=body.producer_id, sequence_id=body.sequence_id, **error)

    async with coordinated() as (told, played, client), client.create_producer("t") as producer:
        played.on[Type.SEND] = refuse
        with pytest.raises(errors.NotAllowedError):
            async with client.transaction() as txn:
                await producer.send(b"x", txn=txn)
        assert (ends(told.asked), txn.state()) == ([("abort", 1)], TransactionState.ABORTED)


@on_both
async def test_a_registration_that_is_refused() -> None:
    async with coordinated() as (told, played, client), client.create_producer("t") as producer:
        told.refusals[Type.ADD_PARTITION_TO_TXN] = [pb.TransactionNotFound]
        txn = await client.begin_transaction()
        with pytest.raises(errors.TransactionNotFound):
            await producer.send(b"x", txn=txn)
        assert played.count(Type.SEND) == 0
        await producer.send(b"x", txn=txn)  # the client asks the coordinator again
        assert told.asked.count(("partition", 1, TOPIC)) == 2
        with pytest.raises(errors.TransactionHasOperationFailed):
            await txn.commit()


@on_both
async def test_after_its_time_it_is_over() -> None:
    async with coordinated() as (told, played, client), client.create_producer("t") as producer:
        txn = await client.begin_transaction(timeout=10)
        await anyio.sleep(9.9)
        await producer.send(b"x", txn=txn)
        await anyio.sleep(0.1)
        assert txn.state() is TransactionState.TIME_OUT
        for call in (txn.commit, txn.abort, lambda: producer.send(b"x", txn=txn)):
            with pytest.raises(errors.InvalidTxnStatusError, match="TIME_OUT"):
                await call()
        assert ends(told.asked) == []
        assert played.count(Type.SEND) == 1


@on_both
async def test_its_end_waits_no_longer_than_its_time() -> None:
    async with coordinated() as (told, played, client), client.create_producer("t") as producer:
        played.on[Type.SEND] = silence
        txn = await client.begin_transaction(timeout=10)
        await producer.submit(b"x", txn=txn)
        with pytest.raises(errors.InvalidTxnStatusError, match="timed out"):
            await txn.commit()
        assert (ends(told.asked), txn.state()) == ([], TransactionState.TIME_OUT)
        producer.abandon()


@on_both
async def test_a_lost_commit_is_asked_again() -> None:
    async with coordinated() as (told, _, client):
        told.refusals[Type.END_TXN] = [None]
        async with client.transaction() as txn:
            pass
        assert ends(told.asked) == [("commit", 1)] * 2
        assert txn.state() is TransactionState.COMMITTED


@on_both
async def test_a_lost_commit_that_may_have_been_one() -> None:
    async with coordinated() as (told, _, client):
        told.refusals[Type.END_TXN] = [None, pb.TransactionNotFound]
        txn = await client.begin_transaction()
        with pytest.raises(errors.TransactionNotFound, match="unless it timed out"):
            await txn.commit()
        assert txn.state() is TransactionState.ERROR


@on_both
async def test_an_abort_whose_answer_was_lost_is_done() -> None:
    async with coordinated() as (told, _, client):
        told.refusals[Type.END_TXN] = [None, pb.TransactionNotFound]
        txn = await client.begin_transaction()
        await txn.abort()
        assert txn.state() is TransactionState.ABORTED


@on_both
async def test_a_transaction_that_the_coordinator_does_not_know_is_in_error() -> None:
    async with coordinated() as (told, _, client):
        told.refusals[Type.END_TXN] = [pb.TransactionNotFound, pb.InvalidTxnStatus]
        for error in (errors.TransactionNotFound, errors.InvalidTxnStatusError):
            txn = await client.begin_transaction()
            with pytest.raises(error):
                await txn.abort()
            assert txn.state() is TransactionState.ERROR


@on_both
async def test_without_an_answer_it_can_be_committed_again() -> None:
    async with coordinated(operation_timeout=2.0) as (_, played, client):
        txn = await client.begin_transaction()
        end = played.on[Type.END_TXN]
        played.on[Type.END_TXN] = silence
        with pytest.raises(errors.Timeout):
            await txn.commit()
        states = [txn.state()]
        with pytest.raises(errors.InvalidTxnStatusError):
            await txn.abort()
        played.on[Type.END_TXN] = end
        await txn.commit()
        assert [*states, txn.state()] == [TransactionState.COMMITTING, TransactionState.COMMITTED]


@on_both
async def test_an_exception_aborts_and_is_raised_whatever_the_abort_does() -> None:
    async with coordinated() as (told, _, client):
        for refusals in ([], [pb.TransactionNotFound]):
            told.refusals[Type.END_TXN] = [*refusals]
            with pytest.raises(ZeroDivisionError):
                async with client.transaction():
                    raise ZeroDivisionError
        assert ends(told.asked) == [("abort", 1), ("abort", 2)]


@on_both
async def test_a_cancelled_block_is_aborted_and_does_not_wait_long_for_that() -> None:
    async with coordinated() as (_, played, client):
        for end in (played.on[Type.END_TXN], silence):
            played.on[Type.END_TXN] = end
            start = anyio.current_time()
            with anyio.move_on_after(5) as scope:
                async with client.transaction():
                    await anyio.sleep_forever()
            assert scope.cancelled_caught
            assert anyio.current_time() - start <= 6.01
        assert played.count(Type.END_TXN) == 2


@on_both
async def test_a_block_that_ended_it_itself() -> None:
    async with coordinated() as (told, _, client):
        async with client.transaction() as one:
            await one.abort()
        async with client.transaction() as two:
            await two.commit()
        assert ends(told.asked) == [("abort", 1), ("commit", 2)]
        assert (one.state(), two.state()) == (TransactionState.ABORTED, TransactionState.COMMITTED)


@on_both
async def test_a_cancelled_acknowledgement_is_no_part_of_it() -> None:
    async with coordinated() as (told, played, client), client.subscribe("t", "s") as consumer:
        played.on[Type.ACK] = silence
        txn = await client.begin_transaction()
        with anyio.move_on_after(1):
            await consumer.acknowledge(WHERE, txn=txn)
        with pytest.raises(errors.TransactionHasOperationFailed):
            await txn.commit()
        assert ends(told.asked) == [("abort", 1)]


@pytest.mark.parametrize("is_first", [True, False], ids=["the first of its kind", "a later one"])
@pytest.mark.parametrize("call", ["send", "submit", "acknowledge", "a list", "of two topics", "acknowledge_cumulative"])
@on_both
async def test_a_canceled_operation_prevents_the_commit(call: str, is_first: bool) -> None:
    async with (
        coordinated() as (told, played, client),
        client.create_producer("t") as producer,
        client.subscribe("t", "s") as consumer,
        client.subscribe(["t", "u"], "s") as both,
    ):
        txn = await client.begin_transaction()
        messages = [Message(part.topic, WHERE, pb.MessageMetadata(), None, b"x") for part in both._parts.all]
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "send": lambda: producer.send(b"x", txn=txn),
            "submit": lambda: producer.submit(b"x", txn=txn),
            "acknowledge": lambda: consumer.acknowledge(WHERE, txn=txn),
            "a list": lambda: consumer.acknowledge([WHERE], txn=txn),
            "of two topics": lambda: both.acknowledge(messages, txn=txn),
            "acknowledge_cumulative": lambda: consumer.acknowledge_cumulative(WHERE, txn=txn),
        }
        if not is_first:
            await calls[call]()
            await producer.flush()
        seen = len(played.seen)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await calls[call]()
        assert scope.cancelled_caught
        with pytest.raises(errors.TransactionHasOperationFailed):
            await txn.commit()
        assert [base.type for base in played.seen[seen:]] == [Type.END_TXN]
        assert ends(told.asked) == [("abort", 1)]


@on_both
async def test_a_block_that_is_left_normally_when_it_was_cancelled_is_aborted() -> None:
    async with coordinated() as (told, _, client):
        with anyio.CancelScope() as scope:
            async with client.transaction() as txn:
                scope.cancel()
        assert scope.cancelled_caught
        assert (ends(told.asked), txn.state()) == ([("abort", 1)], TransactionState.ABORTED)


@pytest.mark.parametrize("kind", ConsumerType)
@on_both
async def test_consumers_in_order_begin_again_where_they_are_after_an_abort(kind: ConsumerType) -> None:
    async with coordinated() as (told, played, client):
        async with client.subscribe("t", "s", consumer_type=kind) as consumer:
            async with client.transaction() as committed:
                await consumer.acknowledge(WHERE, txn=committed)
            txn = await client.begin_transaction()
            await consumer.acknowledge([WHERE, MessageId(1, 2)], txn=txn)
            await txn.abort()
        in_order = kind in (ConsumerType.Exclusive, ConsumerType.Failover)
        assert played.count(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES) == in_order
        assert ends(told.asked) == [("commit", 1), ("abort", 2)]


@on_both
async def test_a_batch_is_acknowledged_message_by_message() -> None:
    async with coordinated() as (_, played, client), client.subscribe("t", "s") as consumer:
        async with client.transaction() as txn:
            await consumer.acknowledge([MessageId(1, 5, -1, index, 4) for index in (0, 2)], txn=txn)
            await consumer.acknowledge_cumulative(MessageId(1, 6, -1, 1, 4), txn=txn)
        first, second = [base.ack for base in played.seen if base.type == Type.ACK]
        (one,) = first.message_id
        (other,) = second.message_id
        assert (one.entryId, list(one.ack_set), one.batch_size) == (5, [0b1010], 4)
        assert (other.entryId, list(other.ack_set), other.batch_size) == (6, [0b1100], 4)
        assert (first.ack_type, second.ack_type) == (pb.CommandAck.Individual, pb.CommandAck.Cumulative)


@pytest.mark.parametrize("batched", [False, True], ids=["plain", "batched"])
@pytest.mark.parametrize("commits", [True, False], ids=["committed", "aborted"])
async def test_a_cumulative_acknowledgement_holds_when_it_is_committed(
    autojump_clock: MockClock, commits: bool, batched: bool
) -> None:
    async with in_process(CONFIG) as inside, inside.client() as client:
        async with client.create_producer("t", batching_enabled=batched) as producer:
            for number in range(5):
                producer.send_nowait(b"%d" % number)
        async with client.subscribe("t", "s", initial_position=InitialPosition.Earliest) as consumer:
            txn = await client.begin_transaction()
            await consumer.acknowledge_cumulative((await received(consumer, 3))[-1], txn=txn)
            await (txn.commit() if commits else txn.abort())
        async with client.subscribe("t", "s") as consumer:
            assert await data_of(consumer, 2 if commits else 5) == [b"%d" % n for n in range(3 if commits else 0, 5)]


@on_both
async def test_a_batch_of_which_something_was_refused_comes_again_all_the_same() -> None:
    options: dict[str, Any] = {"consumer_type": ConsumerType.Shared, "negative_ack_redelivery_delay": 5.0}
    async with coordinated() as (_, played, client), client.subscribe("t", "s", **options) as consumer:
        consumer.negative_acknowledge(MessageId(1, 5, -1, 0, 3))
        consumer.negative_acknowledge(MessageId(1, 6))
        async with client.transaction() as txn:
            await consumer.acknowledge([MessageId(1, 5, -1, 1, 3), MessageId(1, 6)], txn=txn)
        again = await played.sent(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES)
        assert [one.entryId for one in again.message_ids] == [5]


@on_both
async def test_once_and_in_the_order_of_the_calls() -> None:
    registrations, made, order = TransactionParts(), [], list[int]()

    async def register() -> None:
        await anyio.sleep(1)
        made.append("a")

    async def call(number: int) -> None:
        await anyio.sleep(number / 100)
        await registrations.once("a", register)
        order.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(call, number)
    await registrations.once("a", register)
    assert (made, order) == (["a"], [0, 1, 2, 3, 4])


@on_both
async def test_a_failed_registration_is_tried_by_the_next_caller() -> None:
    registrations, tries = TransactionParts(), list[int]()

    async def register() -> None:
        tries.append(1)
        await anyio.lowlevel.checkpoint()
        if len(tries) == 1:
            raise ZeroDivisionError

    async def fail() -> None:
        with pytest.raises(ZeroDivisionError):
            await registrations.once("a", register)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fail)
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(registrations.once, "a", register)
    await registrations.once("a", register)
    await registrations.once("b", register)
    assert len(tries) == 3


# ---- Messages that are read, answered and acknowledged in transactions, while connections break: each is answered once


MESSAGES = 12
ROUNDS = 300


class Change(Exception):
    """An error that stands for an application that changes its mind."""


class Loop:
    """An application that takes messages, answers each, and acknowledges them, in one transaction."""

    def __init__(
        self, inside: InProcess, client: Client, consumer: Consumer[bytes], producer: Producer[bytes], seed: int
    ) -> None:
        self.inside = inside
        self.client = client
        self.consumer = consumer
        self.producer = producer
        self.chance = random.Random(seed)
        self.failed = 0

    async def run(self) -> None:
        for _ in range(ROUNDS):
            messages = await self._some()
            if not messages:
                return
            try:
                await self._answer(messages)
            except (PulsarError, Change):
                self.failed += 1
                for message in messages:
                    self.consumer.negative_acknowledge(message)
        raise AssertionError("there is no end to it")

    async def _some(self) -> list[Message[bytes]]:
        messages = []
        for number in range(self.chance.randrange(1, 4)):
            with anyio.move_on_after(60 if number == 0 else 0.1):
                messages.append(await self.consumer.receive())
        return messages

    async def _answer(self, messages: list[Message[bytes]]) -> None:
        async with self.client.transaction(timeout=20) as txn:
            for message in messages:
                await self._perhaps_cut()
                await self.producer.submit(message.data(), txn=txn)
                await self._perhaps_cut()
                await self.consumer.acknowledge(message, txn=txn)
            if self.chance.random() < 0.1:
                raise Change

    async def _perhaps_cut(self) -> None:
        if self.chance.random() < 0.1:
            await self.inside.cut()


@pytest.mark.req("B-29")
@pytest.mark.parametrize("seed", range(6))
async def test_each_is_answered_once(autojump_clock: MockClock, seed: int) -> None:
    kind = list(ConsumerType)[seed % 4]
    async with in_process(CONFIG) as inside, inside.client(operation_timeout=5) as client:
        inside.partitioned("in", 2)
        async with (
            client.create_producer("in", batching_max_messages=3) as source,
            client.create_producer("out") as producer,
            client.subscribe(
                "in",
                "s",
                consumer_type=kind,
                initial_position=InitialPosition.Earliest,
                negative_ack_redelivery_delay=1,
            ) as consumer,
        ):
            for number in range(MESSAGES):
                await source.submit(b"%d" % number)
            await source.flush()
            loop = Loop(inside, client, consumer, producer, seed)
            await loop.run()
            await anyio.sleep(30)  # open transactions have timed out
            async with client.create_reader("out", MessageId.earliest) as reader:
                found = []
                while await reader.has_message_available():
                    found.append(int((await reader.read_next()).data()))
            assert sorted(found) == list(range(MESSAGES)), loop.failed
