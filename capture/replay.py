"""Replay the client's side of a capture: what to send next, what to wait for, and the ids of the other broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pulsarium.capture.file import CaptureError, CaptureRecord, EventKind
from pulsarium.capture.lint.checker import Walk
from pulsarium.capture.lint.exchanges import answered_key
from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.shared import Transaction, position_of, transaction_of
from pulsarium.proto.commands import Direction
from pulsarium.proto.entry import build, checksum_matches, parse_metadata, payload_of
from pulsarium.proto.errors import EntryError
from pulsarium.proto.framing import frame as framed
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, MessageIdData
from pulsarium.proto.numbers import unsigned

Key = tuple[int, object]
"""Connection, and a name that the frames of both brokers share."""

_KEEP_ALIVE = {"PING", "PONG"}
_SECRETS = ("auth_data", "original_auth_data")


@dataclass(frozen=True, slots=True)
class Open:
    """Connect to the broker."""

    connection: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send a frame, after `Replay.rewritten`."""

    connection: int
    frame: Frame


@dataclass(frozen=True, slots=True)
class Await:
    """Wait for the frame that the recorded broker sent here: until the count of `key` is at least `count`."""

    key: Key
    count: int


@dataclass(frozen=True, slots=True)
class CloseStep:
    """Close the connection, or wait until the broker does."""

    connection: int
    sender: Direction


class Replay:
    """Replay of one capture. `steps` yields the steps in order, while `arrived` gets the other broker's frames."""

    def __init__(self) -> None:
        self.arrivals: Counter[Key] = Counter()
        """Number of frames of the other broker, by key."""
        self._expected: Counter[Key] = Counter()
        self._recorded: dict[tuple[Key, int], Frame] = {}
        self._early: dict[tuple[Key, int], Frame] = {}
        self._positions: dict[tuple[int, int], tuple[int, int]] = {}
        self._transactions: dict[Transaction, Transaction] = {}
        self._names: dict[str, str] = {}

    def steps(self, records: Iterable[CaptureRecord]) -> Iterator[Open | Send | Await | CloseStep]:
        """Yield the steps. Raise `CaptureError` for a frame that the capture has only in part."""
        walk, opened = Walk(), set[int]()
        for record in records:
            frame = walk.feed(record)[1].frame
            connection = record.connection
            if record.kind is EventKind.OPENED:
                opened.add(connection)
                yield Open(connection)
            elif connection not in opened:
                continue  # its CONNECT is not in the capture
            elif record.kind is EventKind.CLOSED:
                yield CloseStep(connection, record.sender)
            elif frame is None or frame.name in _KEEP_ALIVE:
                continue
            elif record.sender is Direction.CLIENT:
                if record.cut:
                    raise CaptureError(
                        f"connection {connection}, frame {frame.number} has {len(record.data)} of {record.size} bytes: "
                        "capture without --keep-entry"
                    )
                yield Send(connection, frame)
            else:
                key = _key(frame)
                self._expected[key] += 1
                yield self._expect(key, self._expected[key], frame)

    def _expect(self, key: Key, count: int, frame: Frame) -> Await:
        there = self._early.pop((key, count), None)
        if there is None:
            self._recorded[key, count] = frame
        else:
            self._learn(frame, there)
        return Await(key, count)

    def arrived(self, connection: int, frame: Frame) -> None:
        """Add a frame of the other broker, on the connection of this number in the capture."""
        key = (connection, _key(frame)[1])
        self.arrivals[key] += 1
        at = (key, self.arrivals[key])
        recorded = self._recorded.pop(at, None)
        if recorded is None:
            self._early[at] = frame
        else:
            self._learn(recorded, frame)

    def _learn(self, recorded: Frame, there: Frame) -> None:
        """Note the ids that the other broker has in place of the recorded ones."""
        if recorded.name != there.name or recorded.body is None:
            return
        for name in ("message_id", "last_message_id"):
            if name in recorded.body.DESCRIPTOR.fields_by_name:
                position = position_of(getattr(recorded.body, name))
                if position >= (0, 0):
                    self._positions[position] = position_of(getattr(there.body, name))
        if recorded.name == "PRODUCER_SUCCESS":
            self._names[recorded.body.producer_name] = there.body.producer_name
        if recorded.name == "NEW_TXN_RESPONSE":
            before, now = transaction_of(recorded.body), transaction_of(there.body)
            if before is not None and now is not None:
                self._transactions[before] = now

    def rewritten(self, frame: Frame) -> bytes:
        """Return a frame of the client with the other broker's ids, and without the asterisks of credentials."""
        data = frame.record.data
        if frame.spec is None:
            return data
        command = BaseCommand.FromString(data[8 : 8 + int.from_bytes(data[4:8], "big")])
        body = getattr(command, frame.spec.field)
        for name in _SECRETS:
            if name in body.DESCRIPTOR.fields_by_name:
                body.ClearField(name)
        self._rewrite(body)
        entry = frame.entry
        if frame.name == "SEND":
            entry = self._entry(entry)
        return framed(command.SerializePartialToString(), entry)

    def _rewrite(self, body: Any) -> None:
        transaction = transaction_of(body) if "txnid_most_bits" in body.DESCRIPTOR.fields_by_name else None
        if transaction in self._transactions:
            body.txnid_most_bits, body.txnid_least_bits = self._transactions[transaction]
        for field, value in body.ListFields():
            if field.message_type is MessageIdData.DESCRIPTOR:
                for each in value if field.is_repeated else [value]:
                    position = self._positions.get(position_of(each))
                    if position is not None:
                        each.ledgerId, each.entryId = map(unsigned, position)

    def _entry(self, entry: bytes) -> bytes:
        """Return an entry with the other broker's transaction, and the name that it gave to the producer."""
        try:
            if checksum_matches(entry) is False:
                return entry
            metadata = parse_metadata(entry)
        except EntryError:
            return entry
        metadata.producer_name = self._names.get(metadata.producer_name, metadata.producer_name)
        self._rewrite(metadata)
        return build(metadata, payload_of(entry), checksum=checksum_matches(entry) is not None)


def _key(frame: Frame) -> Key:
    """Return the connection and the name of a broker's frame: the answered request, or the command and its consumer."""
    of = (frame.name, frame.producer_id, frame.consumer_id)
    return frame.record.connection, answered_key(frame) or of


PONG = framed(BaseCommand(type=BaseCommand.PONG, pong={}).SerializeToString())
"""Answer to the other broker's keep-alive."""
