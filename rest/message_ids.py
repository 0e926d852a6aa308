"""Message ids in bodies and answers."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypedDict

from pulsarium.proto.numbers import LONG_MAX


class Id(Protocol):
    """The position of a message, such as the client's MessageId."""

    @property
    def ledger_id(self) -> int:
        """Return the id of the ledger."""

    @property
    def entry_id(self) -> int:
        """Return the id of the entry in its ledger."""

    @property
    def partition(self) -> int:
        """Return the number of the partition, or -1."""

    @property
    def batch_index(self) -> int:
        """Return the place of the message in its batch, or -1."""


class PlainId(NamedTuple):
    """The simplest `Id`."""

    ledger_id: int
    entry_id: int
    partition: int = -1
    batch_index: int = -1


class MessageIdData(TypedDict, total=False):
    """A message id in JSON. Fields that do not apply are -1 or missing."""

    ledgerId: int
    entryId: int
    partitionIndex: int
    batchSize: int
    batchIndex: int


EARLIEST = PlainId(-1, -1)
LATEST = PlainId(LONG_MAX, LONG_MAX)


def body_of(message_id: Id, **more: object) -> dict[str, object]:
    """Return a message id as a JSON body, with `more` fields."""
    return {
        "ledgerId": message_id.ledger_id,
        "entryId": message_id.entry_id,
        "partitionIndex": message_id.partition,
        "batchIndex": message_id.batch_index,
        **more,
    }


def skipped(message_id: Id) -> dict[str, int]:
    """Return a message id for a list of messages to skip (PIP-423).

    It has no partition, as the broker asks every one.
    """
    index = {} if message_id.batch_index < 0 else {"batchIndex": message_id.batch_index}
    return {"ledgerId": message_id.ledger_id, "entryId": message_id.entry_id, **index}
