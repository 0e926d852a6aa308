"""Entries that a connection brings, and the permits that they cost."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.client import ConsumerCryptoFailureAction, MessageId
from pulsarium.client.consumer.acknowledgements import ack_set
from pulsarium.client.consumer.start import Start
from pulsarium.client.errors import ConnectError, CryptoError
from pulsarium.proto import batch
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import batch_of, plain
from tests.client.both import run_on
from tests.client.consumer.fed import Fed
from tests.client.hostile.clocks import on_both


def compacted(*gone: bool) -> bytes:
    singles = [(pb.SingleMessageMetadata(payload_size=0, compacted_out=out), b"%d" % i) for i, out in enumerate(gone)]
    return plain(batch.pack(singles), num_messages_in_batch=len(gone))


def test_compacted_out_and_acknowledged_messages_are_left_out() -> None:
    fed = Fed(receiver_queue_size=1)
    fed.feed(compacted(False, True, False, True))
    assert fed.connection.permits == 1 + 2  # the permits of both removed messages come back at once
    assert fed.data() == [b"0", b"2"]
    assert fed.connection.permits == 1 + 4
    fed.feed(batch_of(b"0", b"1", b"2"), 1, ack_set=ack_set([2]))
    assert fed.data() == [b"2"]
    assert fed.connection.permits == 1 + 4 + 1  # the acknowledged messages cost no permits (S54-16)


def test_an_entry_with_nothing_to_deliver_is_acknowledged() -> None:
    fed = Fed()
    fed.feed(compacted(True, True), 7)
    assert fed.connection.acked == [(7, None)]


def test_messages_before_an_epoch_are_dropped() -> None:
    fed = Fed(receiver_queue_size=1)
    fed.receiver.epoch = 2
    fed.feed(batch_of(b"0", b"1"), consumer_epoch=1)
    assert (fed.data(), fed.connection.permits) == ([], 3)
    fed.feed(plain(b"2"), consumer_epoch=2)
    fed.feed(plain(b"3"))  # from a broker without epochs
    assert fed.data() == [b"2", b"3"]


def test_receive_raises_the_error_of_a_payload_processor() -> None:
    class Broken:
        def process(self, metadata: pb.MessageMetadata, payload: bytes) -> list[Any]:
            raise KeyError("mine")

    fed = Fed(message_payload_processor=Broken(), receiver_queue_size=1)
    fed.feed(batch_of(b"0", b"1"))
    with pytest.raises(KeyError, match="mine"):
        fed.data()
    assert fed.connection.permits == 3
    assert fed.connection.acked == []


@pytest.mark.parametrize("action", ConsumerCryptoFailureAction)
def test_each_action_on_a_message_that_cannot_be_decrypted_gives_its_permits_back(
    action: ConsumerCryptoFailureAction,
) -> None:
    fed = Fed(crypto_failure_action=action, receiver_queue_size=1)
    fed.feed(batch_of(b"0", b"1", encryption_keys=[{"key": "k", "value": b"v"}], encryption_param=b"n" * 12), 3)
    if action is ConsumerCryptoFailureAction.FAIL:
        with pytest.raises(CryptoError):
            fed.data()
    else:
        assert len(fed.data()) == (action is ConsumerCryptoFailureAction.CONSUME)
    discarded = [(3, pb.CommandAck.DecryptionError)] if action is ConsumerCryptoFailureAction.DISCARD else []
    assert fed.connection.acked == discarded
    assert fed.connection.permits == 3


def test_a_reader_that_lost_its_connection_goes_on_where_it_was() -> None:
    fed = Fed(Start(MessageId.earliest))
    fed.feed(batch_of(b"0", b"1", b"2"), 4)
    fed.receiver.take()
    fed.receiver.on_lost(ConnectError())
    assert fed.losses == 1
    assert fed.receiver.start == Start(MessageId(1, 4, -1, 1), inclusive=True)
    fed.open()
    fed.feed(batch_of(b"0", b"1", b"2"), 4)
    assert fed.data() == [b"1", b"2"]
    fed.receiver.on_lost(ConnectError())
    assert fed.receiver.start == Start(MessageId(1, 4))
    assert fed.receiver.last_seen is None
    fed.receiver.on_lost(ConnectError())  # before the first entry
    assert fed.receiver.start == Start(MessageId(1, 4))


# ---- the permits that the broker says it took (PIP-491)


def damaged(entry: bytes, at: int = -1) -> bytes:
    """Return the entry with another byte, which its checksum does not fit."""
    changed = bytearray(entry)
    changed[at] ^= 0xFF
    return bytes(changed)


METADATA = 10  # the place of an entry's metadata, behind magic number, checksum and size
TEN = batch_of(*[b"%d" % number for number in range(10)])
UNREADABLE = {
    "checksum": damaged(TEN),
    "metadata": damaged(TEN, METADATA),
    "size of metadata": damaged(TEN, METADATA - 4),
    "decompression": plain(b"no LZ4", num_messages_in_batch=10, compression=pb.LZ4, uncompressed_size=100),
    "batch": plain(b"no batch", num_messages_in_batch=10),
}


@pytest.mark.parametrize("fault", UNREADABLE)
def test_an_unreadable_entry_gives_back_what_the_broker_took(fault: str) -> None:
    fed = Fed(receiver_queue_size=1)
    fed.feed(UNREADABLE[fault], message_permits=10)
    assert (fed.data(), fed.connection.permits) == ([], 1 + 10)


def test_a_damaged_part_of_a_batch_gives_back_the_permits_of_the_part() -> None:
    fed = Fed(receiver_queue_size=1)
    fed.feed(damaged(TEN, METADATA - 4), ack_set=ack_set([0, 2, 5]), message_permits=3)
    assert fed.connection.permits == 1 + 3


def test_a_damaged_message_before_an_epoch_gives_back_what_the_broker_took() -> None:
    fed = Fed(receiver_queue_size=1)
    fed.receiver.epoch = 2
    fed.feed(damaged(TEN, METADATA - 4), consumer_epoch=1, message_permits=10)
    assert fed.connection.permits == 1 + 10


@pytest.mark.parametrize(("fields", "back"), [({}, 1), ({"message_permits": 0}, 1), ({"message_permits": 2**31}, 1)])
def test_permits_that_cannot_be_are_not_given_back(fields: dict[str, int], back: int) -> None:
    fed = Fed(receiver_queue_size=1)
    fed.feed(damaged(TEN, METADATA - 4), **fields)
    assert fed.connection.permits == 1 + back


@pytest.mark.parametrize("said", [0, 9, 11, 2**32 - 1])
def test_where_the_entry_contradicts_the_broker_its_messages_count(said: int, caplog: pytest.LogCaptureFixture) -> None:
    fed = Fed(receiver_queue_size=1)
    fed.feed(TEN, message_permits=said)
    fed.feed(UNREADABLE["batch"], 1, message_permits=said)
    assert len(fed.data()) == 10
    assert fed.connection.permits == 1 + 10 + 10
    warning = f"the broker says {said} permits, and the entry has 10 messages to deliver: 10 go back"
    assert [record.getMessage() for record in caplog.records] == [f"entry 1:0: {warning}"]  # once, and not for each


def test_permits_of_a_former_consumer_are_not_given_to_its_successor() -> None:
    """The connection stays: the broker closed the consumer alone."""
    fed = Fed(receiver_queue_size=10)
    fed.feed(damaged(TEN), message_permits=4)  # less than half of the queue, so the permits wait
    fed.feed(batch_of(b"0", b"1"), 1, message_permits=2)
    fed.receiver.on_lost(ConnectError())
    assert (fed.connection.permits, len(fed.receiver)) == (10, 0)
    fed.open()
    assert fed.connection.permits == 10 + 10
    fed.feed(batch_of(*[b"x"] * 4), 2, message_permits=4)
    assert len(fed.data()) == 4
    assert fed.connection.permits == 10 + 10


entries = st.one_of(
    st.builds(plain, st.just(b"m")),
    st.lists(st.booleans(), min_size=1, max_size=5).map(lambda gone: compacted(*gone)),
    st.integers(1, 5).map(lambda size: plain(b"broken", num_messages_in_batch=size)),
    st.integers(1, 5).map(
        lambda size: plain(b"?", num_messages_in_batch=size, encryption_keys=[{"key": "k", "value": b"v"}])
    ),
)


@given(
    st.integers(1, 10),
    st.lists(st.tuples(entries, st.sets(st.integers(0, 4), min_size=1), st.booleans()), max_size=20),
    st.booleans(),
    st.booleans(),
)
def test_every_permit_comes_back(
    size: int, fed_entries: list[tuple[bytes, set[int], bool]], skip_first: bool, said: bool
) -> None:
    start = Start(MessageId(1, 0, -1, 1)) if skip_first else None
    fed = Fed(start, receiver_queue_size=size)
    charged = 0
    for number, (entry, left, partly) in enumerate(fed_entries):
        count = pb.MessageMetadata.FromString(entry[10 : 10 + int.from_bytes(entry[6:10], "big")]).num_messages_in_batch
        left = {index for index in left if index < count}
        if partly and count > 1 and left:
            permits, fields = len(left), {"ack_set": ack_set(left)}
        else:
            permits, fields = count, {}
        charged += permits
        fed.feed(entry, number, **fields, **({"message_permits": permits} if said else {}))
    while fed.receiver:
        with contextlib.suppress(CryptoError):
            fed.receiver.take()
    assert 0 <= size + charged - fed.connection.permits < max(1, size // 2)


# ---- chunks


def chunk(number: int, payload: bytes, count: int = 3, uuid: str = "u", **fields: Any) -> bytes:
    fields = {"total_chunk_msg_size": 3 * count, "publish_time": int(time.time() * 1000), **fields}
    return plain(payload, uuid=uuid, chunk_id=number, num_chunks_from_msg=count, **fields)


SECRET: dict[str, Any] = {"encryption_keys": [{"key": "k", "value": b"v"}], "encryption_param": b"n" * 12}


@on_both
async def test_chunks_become_one_message_and_every_permit_comes_back() -> None:
    fed = Fed(receiver_queue_size=1, expire_time_of_incomplete_chunked_message=0)
    for number, payload in enumerate([b"abc", b"def", b"g"]):
        assert len(fed.receiver) == 0
        fed.feed(chunk(number, payload), number)
        assert fed.connection.permits == 1 + min(number + 1, 2)  # the message keeps the permit of its last chunk
    message = fed.receiver.take()
    assert message.data() == b"abcdefg"
    assert message.message_id() == MessageId(1, 2)
    assert message.message_id().first_chunk == MessageId(1, 0)
    assert message.message_id().entries == ((1, 0), (1, 1), (1, 2))
    assert fed.connection.permits == 1 + 3
    fed.feed(chunk(2, b"x", uuid="lost"), 7)
    assert fed.connection.permits == 1 + 4
    assert fed.connection.acked == []


@on_both
async def test_chunks_that_do_not_decompress() -> None:
    fed = Fed(receiver_queue_size=1, expire_time_of_incomplete_chunked_message=0)
    for number in range(3):
        fed.feed(chunk(number, b"abc", compression=pb.ZLIB, uncompressed_size=20), number)
    assert fed.data() == []
    (ack,) = [command.ack for command in fed.connection.sent if command.type == pb.BaseCommand.ACK]
    assert [one.entryId for one in ack.message_id] == [0, 1, 2]
    assert ack.validation_error == pb.CommandAck.DecompressionError
    assert fed.connection.permits == 1 + 3


@pytest.mark.parametrize("action", ConsumerCryptoFailureAction)
@on_both
async def test_chunks_that_cannot_be_decrypted(action: ConsumerCryptoFailureAction) -> None:
    """FAIL raises once, and leaves the decrypted chunks unacknowledged. DISCARD acknowledges all chunks."""
    fed = Fed(crypto_failure_action=action, receiver_queue_size=1, expire_time_of_incomplete_chunked_message=0)
    fed.feed(chunk(0, b"abc"), 0)
    fed.feed(chunk(1, b"def", **SECRET), 1)
    fed.feed(chunk(2, b"ghi", **SECRET), 2)
    match action:
        case ConsumerCryptoFailureAction.FAIL:
            assert len(fed.receiver) == 1
            with pytest.raises(CryptoError):
                fed.receiver.take()
            assert fed.connection.acked == []
        case ConsumerCryptoFailureAction.DISCARD:
            assert fed.data() == []
            assert [entry for entry, _ in fed.connection.acked] == [0, 1, 2]
        case ConsumerCryptoFailureAction.CONSUME:
            assert fed.data() == [b"def", b"ghi"]
            assert fed.connection.acked == []
    assert fed.connection.permits == 1 + 3


@given(
    st.lists(st.sampled_from(["plain", "batch", "u", "v", "w"]), max_size=25),
    st.lists(st.tuples(st.sampled_from(["deliver", "deliver", "take", "lose"]), st.integers(1, 4)), max_size=40),
)
def test_a_reader_reads_everything_once_and_in_order(kinds: list[str], steps: list[tuple[str, int]]) -> None:
    """The connection is lost at any moment, among chunks of several messages."""
    entries: list[bytes] = []
    expected: list[bytes] = []
    parts: dict[str, int] = {}
    for number, kind in enumerate(kinds):
        name = b"%d" % number
        if kind == "plain":
            entries.append(plain(name))
            expected.append(name)
        elif kind == "batch":
            entries.append(batch_of(name + b"a", name + b"b"))
            expected += [name + b"a", name + b"b"]
        else:
            part = parts[kind] = parts.get(kind, -1) + 1
            which = f"{kind}{part // 2}"
            entries.append(chunk(part % 2, f"{which}{part % 2}".encode(), 2, which, total_chunk_msg_size=20))
            if part % 2:
                expected.append(f"{which}0{which}1".encode())

    async def test() -> None:
        fed = Fed(Start(MessageId.earliest), expire_time_of_incomplete_chunked_message=0)
        place, got = 0, []
        for what, count in [*steps, ("deliver", 100), ("take", 100)]:
            if what == "lose":
                fed.receiver.on_lost(ConnectError())
                fed.open()
                assert fed.receiver.start is not None
                place = max(0, fed.receiver.start.first_entry.entry_id)
            for _ in range(count):
                if what == "deliver" and place < len(entries):
                    fed.feed(entries[place], place)
                    place += 1
                elif what == "take" and fed.receiver:
                    got.append(fed.receiver.take().data())
        assert got == expected

    run_on("asyncio", test)
