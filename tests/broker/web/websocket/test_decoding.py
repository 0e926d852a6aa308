"""Messages of an entry: chunks that become one message, and the messages of a batch that are due."""

from __future__ import annotations

import pytest

from pulsarium.broker.web.websocket import decoding
from pulsarium.broker.web.websocket.decoding import MOST_CHUNKED, EntryDecoder, EntryPlace
from pulsarium.proto import batch
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import MessageId
from tests.broker.wire import plain


def place(entry_id: int, *ack_set: int) -> EntryPlace:
    return EntryPlace(7, entry_id, -1, 0, ack_set)


def chunk(uuid: str, number: int, payload: bytes, of: int = 2) -> bytes:
    return plain(payload, uuid=uuid, chunk_id=number, num_chunks_from_msg=of)


def payloads(decoder: EntryDecoder, *entries: bytes) -> list[bytes]:
    return [each.payload for number, entry in enumerate(entries) for each in decoder.messages(place(number), entry)]


def test_chunks_become_one_message_with_the_ids_of_the_first_and_the_last() -> None:
    decoder = EntryDecoder()
    assert payloads(decoder, chunk("u", 0, b"a", 3), plain(b"other"), chunk("u", 1, b"b", 3)) == [b"other"]
    (message,) = decoder.messages(place(9), chunk("u", 2, b"c", 3))
    assert message.payload == b"abc"
    assert message.id == MessageId(7, 9, first_chunk=MessageId(7, 0))


@pytest.mark.parametrize("numbers", [[1], [0, 2], [0, 1, 1], [0, 1, 0, 2]])
def test_a_message_whose_chunks_are_out_of_order_is_not_delivered(numbers: list[int]) -> None:
    assert payloads(EntryDecoder(), *(chunk("u", number, b"x", 3) for number in numbers)) == []


def test_a_message_whose_first_chunk_comes_again_begins_anew() -> None:
    assert payloads(EntryDecoder(), chunk("u", 0, b"old"), chunk("u", 0, b"a"), chunk("u", 1, b"b")) == [b"ab"]


def test_the_oldest_message_goes_when_too_many_are_incomplete() -> None:
    decoder = EntryDecoder()
    names = [f"u{number}" for number in range(MOST_CHUNKED + 1)]
    assert payloads(decoder, *(chunk(name, 0, b"a") for name in names)) == []
    assert len(payloads(decoder, *(chunk(name, 1, b"b") for name in names))) == MOST_CHUNKED


def test_the_bytes_of_an_incomplete_message_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MOST_CHUNKED_BYTES", 3)
    assert payloads(EntryDecoder(), chunk("u", 0, b"aa"), chunk("u", 1, b"bb")) == []


def test_acknowledged_and_compacted_messages_of_a_batch_are_left_out() -> None:
    singles = [pb.SingleMessageMetadata(payload_size=1, compacted_out=number == 3) for number in range(4)]
    entry = plain(batch.pack(zip(singles, (b"a", b"b", b"c", b"d"), strict=True)), num_messages_in_batch=4)
    assert [each.payload for each in EntryDecoder().messages(place(0, 0b1101), entry)] == [b"a", b"c"]
    assert [each.id.batch_index for each in EntryDecoder().messages(place(0), entry)] == [0, 1, 2]
