"""Ids of messages and transactions as text and bytes, and ack sets.

In an ack set (PIP-54) a set bit is a message of a batch that is NOT yet acknowledged.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from google.protobuf.message import DecodeError, EncodeError

from pulsarium.proto.errors import InvalidMessageId
from pulsarium.proto.generated.PulsarApi_pb2 import MessageIdData
from pulsarium.proto.numbers import INT_MAX, LONG_MAX, signed, unsigned

_TEXT = re.compile(r"(-?\d{1,19}):(-?\d{1,19})(?::(-?\d{1,10})(?::(-?\d{1,10}))?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class MessageId:
    """The id of an entry, or of one message of a batch when `batch_index` is not -1.

    Ids are signed: -1 is 2^64 - 1 on the wire. A `batch_size` of 0 is unknown. The id of a chunked message is that of
    its last chunk, with the id of the first chunk in `first_chunk`.
    """

    ledger_id: int
    entry_id: int
    partition: int = -1
    batch_index: int = -1
    batch_size: int = 0
    first_chunk: MessageId | None = None

    EARLIEST: ClassVar[MessageId]
    LATEST: ClassVar[MessageId]

    @staticmethod
    def parse(text: str) -> MessageId:
        """Parse `ledger:entry[:partition[:batch index]]`, or `first;last` for a chunked message.

        Raise `InvalidMessageId`.
        """
        first, chunked, last = text.rpartition(";")
        match = _TEXT.fullmatch(last)
        if match is None or (chunked and ";" in first):
            raise InvalidMessageId(f"not a message id: {text!r}")
        ledger_id, entry_id, partition, batch_index = (-1 if part is None else int(part) for part in match.groups())
        if max(abs(ledger_id), abs(entry_id)) > LONG_MAX or max(abs(partition), abs(batch_index)) > INT_MAX:
            raise InvalidMessageId(f"out of range: {text!r}")
        first_chunk = MessageId.parse(first) if chunked else None
        return MessageId(ledger_id, entry_id, partition, batch_index, first_chunk=first_chunk)

    def __str__(self) -> str:
        text = f"{self.ledger_id}:{self.entry_id}:{self.partition}"
        if self.batch_index != -1:
            text += f":{self.batch_index}"
        return f"{self.first_chunk};{text}" if self.first_chunk else text

    @staticmethod
    def from_bytes(data: bytes) -> MessageId:
        """Parse the serialized form of any client. Raise `InvalidMessageId` when `data` is none."""
        message = MessageIdData()
        try:
            message.ParseFromString(data)
            message.SerializeToString()  # fails when a required field is absent
        except (DecodeError, EncodeError) as error:
            raise InvalidMessageId(f"not a serialized message id: {error}") from None
        return MessageId.from_data(message)

    def to_bytes(self) -> bytes:
        """Return Java's serialized form: without a partition or batch index of -1, always with a batch size."""
        return self.to_data().SerializeToString()

    @staticmethod
    def from_data(data: MessageIdData) -> MessageId:
        """Return the id of a MessageIdData, without its ack set."""
        return MessageId(
            signed(data.ledgerId),
            signed(data.entryId),
            data.partition,
            data.batch_index,
            data.batch_size,
            MessageId.from_data(data.first_chunk_message_id) if data.HasField("first_chunk_message_id") else None,
        )

    def to_data(self) -> MessageIdData:
        """Return the MessageIdData that `to_bytes` serializes."""
        data = MessageIdData(
            ledgerId=unsigned(self.ledger_id), entryId=unsigned(self.entry_id), batch_size=self.batch_size
        )
        if self.partition != -1:
            data.partition = self.partition
        if self.batch_index != -1:
            data.batch_index = self.batch_index
        if self.first_chunk is not None:
            data.first_chunk_message_id.CopyFrom(self.first_chunk.to_data())
        return data


MessageId.EARLIEST = MessageId(-1, -1)
MessageId.LATEST = MessageId(LONG_MAX, LONG_MAX)


class TxnId(NamedTuple):
    """The id of a transaction: `most` is its coordinator, `least` counts the coordinator's transactions."""

    most: int
    least: int

    def __str__(self) -> str:
        return f"({self.most},{self.least})"


_WORD = 2**64 - 1


def bits_of(words: Sequence[int]) -> int:
    """Return an ack set from the wire (signed 64-bit words, lowest first) as one number."""
    return int.from_bytes(struct.pack(f"<{len(words)}Q", *(word & _WORD for word in words)), "little")


def words_of(bits: int) -> list[int]:
    """Return the wire form of an ack set, without trailing zero words."""
    count = (bits.bit_length() + 63) // 64
    return list(struct.unpack(f"<{count}q", bits.to_bytes(8 * count, "little")))
