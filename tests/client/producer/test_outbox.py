"""Messages without a receipt: their memory, their repetition, and duplicates."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.client import BatchingType, Client, InitialPosition, MessageId, Producer, Receipt, Transaction, errors
from pulsarium.client.producer.outbox import Messages, Outbox
from pulsarium.client.statistics import SentCounts
from pulsarium.proto import batch, entry
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Wire, frame_of
from tests.client.both import run_on
from tests.client.hostile.clocks import on_both
from tests.client.hostile.played import Played, playing, silence
from tests.client.in_process import InProcess, in_process
from tests.client.peer import Peer, Type
from tests.client.producer.stage import UNASKED, Stage, answer_producer, producing
from tests.client.transaction.stage import coordinated

CHUNKED: dict[str, Any] = {"batching_enabled": False, "chunking_enabled": True, "chunk_max_message_size": 4}


async def reconnected(stage: Stage, **connected: Any) -> Peer:
    """Accept the producer on a new connection, and return the broker's side of the old one."""
    old, stage.peer = stage.peer, await stage.peers.next()
    await stage.peer.take_in(**connected)
    await stage.peer.lead_here_again()
    await answer_producer(stage.peer)
    return old


@on_both
async def test_a_late_receipt_is_not_taken_for_another_chunk() -> None:
    """Chunks of a message have one sequence id, so only the producer id tells old receipts from new ones."""
    async with producing(**CHUNKED) as stage:
        receipt = stage.producer.send_nowait(b"01234567")
        await stage.payloads(2)
        await stage.peer.say(Type.CLOSE_PRODUCER, producer_id=0, request_id=UNASKED)
        await stage.peer.lead_here_again()
        asked = await answer_producer(stage.peer)
        assert asked.producer_id != 0
        assert [send.producer_id for send, _, _ in [await stage.sent(), await stage.sent()]] == [asked.producer_id] * 2
        await stage.receipt(0, 5)
        await stage.receipt(0, 6)
        await anyio.wait_all_tasks_blocked()
        assert not receipt.is_done()
        stage.producer_id = asked.producer_id
        for entry_id in (7, 8):
            await stage.receipt(0, entry_id)
        assert await receipt.wait() == MessageId(9, 8)


def test_a_reopened_producer_gets_the_full_send_timeout() -> None:
    """Receipts after a reconnection may take as long as those of a new producer."""

    class Connection:
        is_lost = False

        def send_nowait(self, *_: object, at_once: bool = False) -> None:
            pass

    outbox = Outbox(-1, lambda messages, size: None, SentCounts())
    outbox.add(Messages(0, 0, [Receipt()], 1, 1), b"entry")
    assert not outbox.is_stuck()
    connection: Any = Connection()
    outbox.send_all_on(connection)
    assert not outbox.is_stuck()
    assert outbox.is_stuck()


@on_both
async def test_each_connection_may_damage_something_once() -> None:
    async with producing(batching_enabled=False) as stage:
        stage.producer.send_nowait(b"0")
        await stage.payloads(1)
        await stage.refuse(0, pb.ChecksumError)
        assert await stage.payloads(1) == [b"0"]
        await stage.peer.close()
        await reconnected(stage)
        assert await stage.payloads(1) == [b"0"]
        await stage.refuse(0, pb.ChecksumError)
        assert await stage.payloads(1) == [b"0"]


@on_both
async def test_messages_too_large_for_another_broker_fail() -> None:
    """The broker would close the connection at each of them. Smaller messages are sent."""
    async with producing(batching_enabled=False, max_pending_messages=2) as stage:
        receipts = [stage.producer.send_nowait(bytes(500)), stage.producer.send_nowait(b"small")]
        await stage.payloads(2)
        await stage.peer.close()
        await reconnected(stage, max_message_size=400)
        assert await stage.payloads(1) == [b"small"]
        with pytest.raises(errors.MessageTooBig):
            await receipts[0].wait()
        stage.producer.send_nowait(b"has its place")
        await stage.receipt(1)
        await receipts[1].wait()


@on_both
async def test_chunks_that_another_broker_does_not_take_fail_once() -> None:
    options = {**CHUNKED, "chunk_max_message_size": 500}
    async with producing(max_pending_messages=1, **options) as stage:
        receipt = stage.producer.send_nowait(bytes(1001))
        await stage.payloads(3)
        await stage.peer.close()
        await reconnected(stage, max_message_size=400)
        with pytest.raises(errors.MessageTooBig):
            await receipt.wait()
        stage.producer.send_nowait(b"small")
        with pytest.raises(errors.ProducerQueueIsFull):
            stage.producer.send_nowait(b"one place, not two")
        assert await stage.payloads(1) == [b"small"]


@on_both
async def test_an_answer_to_the_last_words_of_a_broken_connection_is_dropped() -> None:
    async with producing(batching_enabled=False) as stage:
        stage.producer.send_nowait(b"0")
        await stage.payloads(1)
        refusal = frame_of(Type.SEND_ERROR, producer_id=0, sequence_id=0, error=pb.ChecksumError, message="no")
        await stage.peer.stream.send(refusal + b"\xff" * 16)
        old = await reconnected(stage)
        assert await stage.payloads(1) == [b"0"]
        await old.close()


@on_both
async def test_when_the_client_is_closed_everything_fails() -> None:
    async with playing() as (played, client):
        played.on[Type.SEND] = silence
        producer = await client.create_producer("t", batching_max_publish_delay=1000).__aenter__()
        receipts = [producer.send_nowait(b"0", deliver_after=1), producer.send_nowait(b"in a batch")]
        await client.aclose()
        for receipt in receipts:
            with pytest.raises(errors.AlreadyClosed):
                await receipt.wait()
        with pytest.raises(errors.AlreadyClosed):
            producer.send_nowait(b"late")


@on_both
async def test_a_full_backlog_fails_what_waits() -> None:
    """Java does so with the policy producer_exception. The producer goes on trying to open."""
    async with producing(batching_max_publish_delay=1000) as stage:
        receipts = [stage.producer.send_nowait(b"0", deliver_after=1)]
        await stage.sent()
        await stage.peer.say(Type.CLOSE_PRODUCER, producer_id=0, request_id=UNASKED)
        receipts.append(stage.producer.send_nowait(b"in a batch"))
        await stage.peer.lead_here_again()
        asked = await stage.peer.expect(Type.PRODUCER)
        await stage.peer.say(
            Type.ERROR, request_id=asked.request_id, error=pb.ProducerBlockedQuotaExceededException, message="full"
        )
        for receipt in receipts:
            with pytest.raises(errors.ProducerBlockedQuotaExceededException):
                await receipt.wait()
        stage.producer.send_nowait(b"1", deliver_after=1)
        assert (await stage.peer.expect(Type.CLOSE_PRODUCER)).producer_id == 0
        await stage.peer.lead_here_again()
        await answer_producer(stage.peer)
        assert await stage.payloads(1) == [b"1"]


# ---- Sequence ids on a broker that deduplicates (PIP-6), also across restarts of the application


DEDUPLICATING = Config(brokerDeduplicationEnabled=True)
NOBODY_REMEMBERS = MessageId(-1, -1)
PLAIN: dict[str, Any] = {"batching_enabled": False}
BATCHED: dict[str, Any] = {"batching_max_publish_delay": 1}


async def stored(client: Client) -> list[bytes]:
    found = []
    async with client.subscribe("t", "s", initial_position=InitialPosition.Earliest) as consumer:
        with anyio.move_on_after(1):
            while True:
                found.append((await consumer.receive()).data())
    return found


@pytest.mark.parametrize("options", [PLAIN, BATCHED], ids=["plain", "batched"])
async def test_an_application_that_starts_again(autojump_clock: MockClock, options: dict[str, Any]) -> None:
    """The producer continues behind its last sequence id, and the broker drops the messages that it repeats."""
    async with in_process(DEDUPLICATING) as inside:
        for start in range(0, 30, 10):
            async with (
                inside.client() as client,
                client.create_producer("t", producer_name="p", **options) as producer,
            ):
                assert producer.last_sequence_id() == start - 1
                again = [producer.send_nowait(b"again", sequence_id=n) for n in range(max(start - 3, 0), start)]
                for n in range(start, start + 10):
                    producer.send_nowait(b"%d" % n)
                await producer.flush()
                for receipt in again:
                    assert await receipt.wait() == NOBODY_REMEMBERS
                assert producer.last_sequence_id() == start + 9
        async with inside.client() as client:
            assert await stored(client) == [b"%d" % n for n in range(30)]


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("options", [PLAIN, BATCHED], ids=["plain", "batched"])
async def test_numbers_of_ones_own(autojump_clock: MockClock, options: dict[str, Any], at_once: bool) -> None:
    """A message without a higher sequence id is a duplicate. The new messages of its batch are stored all the same.

    With `at_once`, the broker cannot tell yet which messages are duplicates, and has the client send all again.
    """
    async with in_process(DEDUPLICATING) as inside, inside.client() as client:
        numbers = [10, 20, 20, 15, 30, 30, 40, 5]
        async with client.create_producer("t", initial_sequence_id=8, **options) as producer:
            receipts = []
            for index, number in enumerate(numbers):
                receipts.append(producer.send_nowait(b"%d-%d" % (index, number), sequence_id=number))
                if not at_once:
                    await producer.flush()
            receipts.append(producer.send_nowait(b"own"))  # gets 9, the number behind the initial one
            ids = [await receipt.wait() for receipt in receipts]
            known = [one.entry != NOBODY_REMEMBERS.entry for one in ids]
            assert at_once or known == [True, True, False, False, True, False, True, False, False]
            assert producer.last_sequence_id() == 40
        assert await stored(client) == [b"0-10", b"1-20", b"4-30", b"6-40"]


async def test_batches_by_key_are_no_duplicates_of_each_other(autojump_clock: MockClock) -> None:
    async with in_process(DEDUPLICATING) as inside, inside.client() as client:
        options = {"batching_type": BatchingType.KeyBased, "batching_max_publish_delay": 1000}
        async with client.create_producer("t", **options) as producer:  # type: ignore[arg-type]
            receipts = [producer.send_nowait(b"%d" % n, partition_key=key) for n, key in enumerate("abbaac")]
            await producer.flush()
            ids = [await receipt.wait() for receipt in receipts]
            assert producer.last_sequence_id() == 5
        assert await stored(client) == [b"1", b"2", b"0", b"3", b"4", b"5"]
        assert sorted(ids) == [ids[n] for n in (1, 2, 0, 3, 4, 5)]
        assert len({one.entry for one in ids}) == 3


async def test_a_duplicate_is_known_before_what_was_sent_earlier(autojump_clock: MockClock) -> None:
    """The call `flush` waits for both messages."""
    async with (
        in_process(DEDUPLICATING) as inside,
        inside.client() as client,
        client.create_producer("t", **PLAIN) as producer,
    ):
        await producer.send(b"0")
        receipts = [producer.send_nowait(b"1"), producer.send_nowait(b"again", sequence_id=0)]
        await producer.flush()
        assert all(receipt.is_done() for receipt in receipts)
        assert await receipts[1].wait() == NOBODY_REMEMBERS
        assert (await receipts[0].wait()).entry_id == 1
        assert producer.last_sequence_id() == 1


@on_both
async def test_a_receipt_for_a_duplicate_finds_its_message() -> None:
    async with producing(batching_enabled=False) as stage:
        receipts = [stage.producer.send_nowait(b"", sequence_id=number) for number in (5, 3, 6)]
        await stage.payloads(3)
        nowhere = {"ledgerId": 2**64 - 1, "entryId": 2**64 - 1}
        for _ in range(2):  # the second receipt has no waiting message
            await stage.peer.say(Type.SEND_RECEIPT, producer_id=0, sequence_id=3, message_id=nowhere)
        assert await receipts[1].wait() == NOBODY_REMEMBERS
        assert not receipts[0].is_done()
        await stage.receipt(5, 1)
        await stage.receipt(6, 2)
        assert [(await receipt.wait()).entry_id for receipt in receipts] == [1, -1, 2]


async def test_chunks_of_a_duplicate(autojump_clock: MockClock) -> None:
    """The broker stores all chunks but the last one again. Only the last chunk's receipt, which comes first, tells."""
    options = {"batching_enabled": False, "chunking_enabled": True, "chunk_max_message_size": 2}
    async with (
        in_process(DEDUPLICATING) as inside,
        inside.client() as client,
        client.create_producer("t", **options) as producer,  # type: ignore[arg-type]
    ):
        for number in range(2):
            first = await producer.send(b"12345", sequence_id=number)
            assert first.first_chunk is not None
            assert await producer.send(b"12345", sequence_id=number) == NOBODY_REMEMBERS
            assert producer.last_sequence_id() == number


@on_both
async def test_batches_by_key_hold_messages_of_one_key_each() -> None:
    async with producing(batching_type=BatchingType.KeyBased, batching_max_messages=5) as stage:
        receipts = [stage.producer.send_nowait(b"%d" % n, partition_key=key) for n, key in enumerate("abbaa")]
        found = [await stage.sent() for _ in range(2)]
        for (send, metadata, payload), key, numbers in zip(found, "ba", ([1, 2], [0, 3, 4]), strict=True):
            assert (send.sequence_id, send.highest_sequence_id, send.num_messages) == (numbers[-1], 0, len(numbers))
            assert (metadata.sequence_id, metadata.highest_sequence_id) == (numbers[-1], 0)
            assert metadata.partition_key == key
            singles = [single for single, _ in batch.unpack(payload, len(numbers))]
            assert [(one.sequence_id, one.partition_key) for one in singles] == [(n, key) for n in numbers]
        await stage.receipt(2, 0)
        await stage.receipt(4, 1)
        assert [(await receipt.wait()).entry_id for receipt in receipts] == [1, 0, 0, 1, 1]


@on_both
async def test_a_duplicate_has_a_batch_of_its_own() -> None:
    async with producing(batching_max_publish_delay=1000) as stage:
        for number in (10, 11, 10, 12, 13):
            stage.producer.send_nowait(b"", sequence_id=number)
        found = [(await stage.sent())[0] for _ in range(2)]
        assert [(send.sequence_id, send.highest_sequence_id) for send in found] == [(10, 11), (10, 0)]


@on_both
async def test_a_refused_batch_is_named_by_its_highest_number() -> None:
    async with producing(batching_max_messages=3) as stage:
        receipts = [stage.producer.send_nowait(b"") for _ in range(3)]
        await stage.sent()
        await stage.refuse(2, pb.NotAllowedError)
        for receipt in receipts:
            with pytest.raises(errors.NotAllowedError):
                await receipt.wait()


@on_both
async def test_a_message_refused_for_a_transient_reason_is_sent_again() -> None:
    """The client uses a new connection, as Java does. The broker cannot tell yet whether the message is stored."""
    async with producing(batching_enabled=False) as stage:
        receipts: list[Receipt] = [stage.producer.send_nowait(b"%d" % n) for n in range(2)]
        await stage.payloads(2)
        await stage.refuse(0, pb.PersistenceError)
        old, stage.peer = stage.peer, await stage.peers.next()
        await stage.peer.take_in()
        await stage.peer.lead_here_again()
        await answer_producer(stage.peer)
        assert await stage.payloads(2) == [b"0", b"1"]
        await stage.peer.say(  # the broker has the message
            Type.SEND_RECEIPT,
            producer_id=0,
            sequence_id=0,
            message_id={"ledgerId": 2**64 - 1, "entryId": 2**64 - 1},
        )
        await stage.receipt(1, 4)
        assert [await receipt.wait() for receipt in receipts] == [NOBODY_REMEMBERS, MessageId(9, 4)]
        await old.close()


# ---- Random histories of one producer on a broker that deduplicates: every message is stored once, in order


ACTIONS = st.one_of(
    st.integers(1, 20),  # number of messages
    st.sampled_from(["unload", "cut", "wait", "moment", "flush", "delayed"]),
)


async def act(action: int | str, inside: InProcess) -> None:
    if action == "unload":
        topics = inside.bed.broker.topics
        if topics.exists(TopicName.parse(TOPIC)):
            topics.unload(TopicName.parse(TOPIC))
            inside.bed.broker.turn.finish()
    elif action == "cut":
        await inside.cut()
    elif action == "wait":
        await anyio.sleep(0.3)
    elif action == "moment":
        await anyio.lowlevel.checkpoint()


KINDS: dict[str, dict[str, Any]] = {
    "plain": {"batching_enabled": False},
    "batched": {"batching_max_messages": 7},
    "by key": {"batching_max_messages": 7, "batching_type": BatchingType.KeyBased},
    "chunked": {"batching_enabled": False, "chunking_enabled": True, "chunk_max_message_size": 3},
}
KEYS = 3


def content(number: int) -> bytes:
    """Return a content of one to three chunks."""
    return b"%d" % number + b" " * (number % 4 * 2)


async def history(actions: list[int | str], kind: str) -> None:
    async with in_process(Config(brokerDeduplicationEnabled=True)) as inside, inside.client() as client:
        receipts: list[Receipt] = []
        client._core.memory.limit = 30

        async def send(producer: Producer, **options: Any) -> None:
            number = len(receipts)
            receipts.append(await producer.submit(content(number), partition_key=str(number % KEYS), **options))

        async with client.create_producer("t", **KINDS[kind]) as producer:
            for action in actions:
                if isinstance(action, int):
                    for _ in range(action):
                        await send(producer)
                elif action == "delayed":
                    await send(producer, deliver_after=0.5)
                elif action == "flush":
                    await producer.flush()
                    assert all(receipt.is_done() for receipt in receipts)
                else:
                    await act(action, inside)
        for number, receipt in enumerate(receipts):
            chunks = -(-len(content(number)) // 3) if kind == "chunked" else 1
            where = await receipt.wait()
            assert where.ledger_id < 0 or (where.first_chunk is not None) == (chunks > 1)
        assert producer.last_sequence_id() == len(receipts) - 1
        assert client._core.memory.used == 0
        found = await everything(inside)
        sent = [content(n) for n in range(len(receipts))]
        if kind == "by key":
            assert sorted(found) == sorted(sent)
            for key in range(KEYS):
                assert [one for one in found if int(one) % KEYS == key] == sent[key::KEYS]
        else:
            assert found == sent


async def everything(inside: InProcess) -> list[bytes]:
    """Return the messages of a consumer, with the chunks of each joined."""
    wire = await inside.bed.connect()
    await wire.subscribe(initialPosition=pb.CommandSubscribe.Earliest)
    await wire.flow(10_000)
    found: list[bytes] = []
    begun: dict[str, list[bytes]] = {}
    while (received := await next_message(wire)) is not None:
        metadata, payload = received
        if metadata.num_chunks_from_msg > 1:
            chunks = begun.setdefault(metadata.uuid, [])
            if metadata.chunk_id == 0:
                chunks.clear()
            if metadata.chunk_id == len(chunks):  # otherwise the chunk was stored before
                chunks.append(payload)
            if metadata.chunk_id == metadata.num_chunks_from_msg - 1:
                found.append(b"".join(begun.pop(metadata.uuid)))
        elif metadata.HasField("num_messages_in_batch"):
            found += [single for _, single in batch.unpack(payload, metadata.num_messages_in_batch)]
        else:
            found.append(payload)
    return found


async def next_message(wire: Wire) -> tuple[pb.MessageMetadata, bytes] | None:
    with anyio.move_on_after(1):
        command, trailing = (await wire.next())[:2]
        assert command.type == pb.BaseCommand.MESSAGE
        return entry.parse_metadata(trailing), entry.payload_of(trailing)
    return None


@given(st.lists(ACTIONS, max_size=15), st.sampled_from(sorted(KINDS)))
@settings(max_examples=40)
def test_every_message_once_and_in_order(actions: list[int | str], kind: str) -> None:
    run_on("trio", history, actions, kind, jump=True)


# ---- Messages in transactions: which of them share entries, and which wait


class Sends:
    """The SENDs that a played broker received. The test chooses when to answer each."""

    def __init__(self, played: Played) -> None:
        self.played = played
        self.commands: list[pb.CommandSend] = []
        self._peers: list[Peer] = []
        played.on[Type.SEND] = self._take

    async def _take(self, peer: Peer, body: Any) -> None:
        sent = pb.CommandSend()
        sent.CopyFrom(body)
        self.commands.append(sent)
        self._peers.append(peer)

    def told(self) -> list[tuple[int, int | None]]:
        """Return the number of the first message of each entry, and its transaction."""
        return [
            (one.sequence_id, one.txnid_least_bits if one.HasField("txnid_least_bits") else None)
            for one in self.commands
        ]

    async def confirm(self, index: int) -> None:
        await self.played.answer(self._peers[index], self.commands[index])

    async def refuse(self, index: int) -> None:
        command = self.commands[index]
        error: dict[str, Any] = {"error": pb.NotAllowedError, "message": "no"}
        await self._peers[index].say(
            Type.SEND_ERROR, producer_id=command.producer_id, sequence_id=command.sequence_id, **error
        )


async def begun(client: Any, count: int) -> list[Transaction]:
    return [await client.begin_transaction() for _ in range(count)]


@on_both
async def test_an_entry_is_of_one_transaction() -> None:
    async with coordinated() as (_, played, client):
        async with client.create_producer("t", batching_max_publish_delay=10.0) as producer:
            one, two = await begun(client, 2)
            for txn in (one, one, two, None, two, two):
                await producer.submit(b"x", txn=txn)
            await producer.flush()
        sends = [base.send for base in played.seen if base.type == Type.SEND]
        assert [(one.num_messages, one.txnid_least_bits, one.HasField("txnid_most_bits")) for one in sends] == [
            (2, 1, True),
            (1, 2, True),
            (1, 0, False),
            (2, 2, True),
        ]


@on_both
async def test_the_metadata_says_it_as_well() -> None:
    found: list[pb.MessageMetadata] = []
    async with coordinated() as (_, _, client):
        talk = Peer.next

        async def noticing(peer: Peer) -> tuple[pb.BaseCommand, bytes]:
            base, trailing = await talk(peer)
            if base.type == Type.SEND:
                found.append(entry.parse_metadata(trailing))
            return base, trailing

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Peer, "next", noticing)
            async with client.create_producer("t") as producer, client.transaction() as txn:
                await producer.send(b"x", txn=txn)
                await producer.send(b"plain")
    assert [(one.txnid_most_bits, one.txnid_least_bits) for one in found] == [(0, 1), (0, 0)]
    assert [one.HasField("txnid_least_bits") for one in found] == [True, False]


@on_both
async def test_the_first_in_a_transaction_goes_alone_on_every_connection() -> None:
    """Java's broker may store the first message of a transaction late, and a later message would overtake it."""
    async with coordinated() as (_, played, client):
        sends = Sends(played)
        async with client.create_producer("t", batching_enabled=False) as producer:
            (txn,) = await begun(client, 1)
            for one in (txn, None, txn):
                await producer.submit(b"x", txn=one)
            await anyio.sleep(1)
            assert sends.told() == [(0, 1)]
            await sends.confirm(0)
            await anyio.sleep(1)
            assert sends.told() == [(0, 1), (1, None), (2, 1)]
            for stream in played.streams:
                await stream.aclose()
            sends.commands.clear()
            sends._peers.clear()
            await producer.submit(b"x")
            await anyio.sleep(5)
            assert sends.told() == [(1, None), (2, 1)]
            for index in (0, 1):
                await sends.confirm(index)
            await anyio.sleep(1)
            assert sends.told() == [(1, None), (2, 1), (3, None)]
            await sends.confirm(2)


@on_both
async def test_a_first_one_that_is_refused_lets_the_next_go_alone() -> None:
    async with coordinated() as (_, played, client):
        sends = Sends(played)
        async with client.create_producer("t", batching_enabled=False) as producer:
            (txn,) = await begun(client, 1)
            receipts = [await producer.submit(b"x", txn=one) for one in (txn, None, txn, None)]
            await anyio.sleep(1)
            await sends.refuse(0)
            await anyio.sleep(1)
            assert sends.told() == [(0, 1), (1, None), (2, 1)]
            with pytest.raises(errors.NotAllowedError):
                await receipts[0].wait()
            for index in (1, 2):
                await sends.confirm(index)
            await anyio.sleep(1)
            assert sends.told()[3:] == [(3, None)]
            await sends.confirm(3)
            await producer.flush()
