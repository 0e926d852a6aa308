"""Read the messages of a topic one by one, in either direction, and those of its partitions by publish time."""

from __future__ import annotations

import base64
import binascii
import math
import re
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.sequence import Visible
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.net.slices import Slice, aside
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.web.admin.topic.messages import size_of
from pulsarium.broker.web.admin.topic.reading import entry_at
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.proto.batch import messages_of
from pulsarium.proto.compression import decompress
from pulsarium.proto.entry import parse_metadata, payload_of
from pulsarium.proto.errors import ProtocolError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import signed

OLDER: Final = "older"
NEWER: Final = "newer"
MOST_CURSOR: Final = 1 << 18  # characters of a cursor
PLACE: Final = re.compile(r"(-?[0-9]{1,18}):(-?[0-9]{1,18})(?::([0-9]{1,9}))?")

Single = pb.MessageMetadata | pb.SingleMessageMetadata


class Place(NamedTuple):
    """A place between two messages: before the message `batch_index` of an entry, counted from 0."""

    position: Position
    batch_index: int = 0

    @classmethod
    def parse(cls, text: str) -> Place:
        """Return the place before LEDGER:ENTRY[:BATCH]. Raise `AdminError` 400 for another text."""
        found = PLACE.fullmatch(text)
        if found is None:
            raise AdminError(400, f"start is {text!r}; it must be earliest, latest or LEDGER:ENTRY[:BATCH]")
        return cls(Position(int(found[1]), max(0, int(found[2]))), int(found[3] or 0))

    def __str__(self) -> str:
        return f"{self.position}:{self.batch_index}" if self.batch_index else str(self.position)


class Cursor(NamedTuple):
    """Places in all parts of a topic, and the direction to read from there. As text, it continues a page."""

    direction: str
    places: Sequence[Place]

    @classmethod
    def parse(cls, text: str) -> Cursor | None:
        """Return the cursor of a text, or None for a text that is none. Raise `AdminError` 400 for a damaged cursor."""
        direction, dot, code = text.partition(".")
        if direction not in (OLDER, NEWER) or not dot:
            return None
        try:
            data = zlib.decompressobj().decompress(base64.urlsafe_b64decode(code), MOST_CURSOR)
            return cls(direction, [Place.parse(each) for each in data.decode().split(",")])
        except (ValueError, binascii.Error, zlib.error):
            raise AdminError(400, f"start is {text[:50]!r}, which is no cursor of this page") from None

    def __str__(self) -> str:
        data = zlib.compress(",".join(map(str, self.places)).encode())
        return f"{self.direction}.{base64.urlsafe_b64encode(data).decode()}"


@dataclass(slots=True, eq=False)
class OpenedEntry:
    """An entry, which is a message, a batch, a chunk or a marker, or damaged."""

    topic: PersistentTopic
    part: int  # the index of the partition, or -1
    position: Position
    entry: bytes = b""
    metadata: pb.MessageMetadata | None = None
    payload: bytes = b""
    damage: str = ""
    singles: list[tuple[Single, bytes]] = field(default_factory=list)  # of a batch

    @property
    def is_batch(self) -> bool:
        return bool(self.singles)

    @property
    def publish_ms(self) -> int:
        return 0 if self.metadata is None else signed(self.metadata.publish_time)


class FoundMessage(NamedTuple):
    """A message, as the reader finds it."""

    entry: OpenedEntry
    batch_index: int = -1

    @property
    def single(self) -> Single | None:
        """Return the metadata of its own, or None for an entry that cannot be read."""
        return self.entry.singles[self.batch_index][0] if self.batch_index >= 0 else self.entry.metadata

    @property
    def body(self) -> bytes:
        return self.entry.singles[self.batch_index][1] if self.batch_index >= 0 else self.entry.payload


class Part:
    """A topic without partitions, or one partition, that is read from a place in one direction."""

    def __init__(self, topic: PersistentTopic, index: int) -> None:
        self.topic = topic
        self.index = index
        self.entries = Visible(topic.ledger.ledgers.values())
        self.end = self.start = self.place = Place(topic.ledger.next(topic.ledger.last_confirmed))

    def begin(self, place: Place) -> None:
        """Read from a place on."""
        self.start = self.place = place

    def has_messages(self, direction: str, place: Place) -> bool:
        """Return whether there are entries in this direction from a place."""
        number = self.entries.number_of(place.position)
        return number < len(self.entries) if direction == NEWER else number > 0 or place.batch_index > 0

    async def next_entry(self, direction: str) -> OpenedEntry | None:
        """Return the next entry in this direction, which is not opened yet, or None at the end."""
        number = self.entries.number_of(self.place.position)
        there = number < len(self.entries) and self.entries[number] == self.place.position
        if direction == OLDER and not (there and self.place.batch_index):
            number -= 1
        while 0 <= number < len(self.entries):
            found = await _read(self.topic, self.index, self.entries[number])
            if found is not None:
                return found
            number += 1 if direction == NEWER else -1  # it was deleted meanwhile
        return None

    def messages(self, entry: OpenedEntry, direction: str) -> Iterator[FoundMessage]:
        """Yield the messages of an opened entry between the place and its end."""
        batch_index = self.place.batch_index if self.place.position == entry.position else 0
        if entry.is_batch:
            count = len(entry.singles)
            forward = range(min(batch_index, count), count)
            indexes = forward if direction == NEWER else range(min(batch_index or count, count) - 1, -1, -1)
        else:
            indexes = range(-1, 0) if direction == OLDER or not batch_index else range(0)
        return (FoundMessage(entry, index) for index in indexes)

    def pass_message(self, found: FoundMessage, direction: str) -> None:
        """Move the place behind a message."""
        index, position = max(0, found.batch_index), found.entry.position
        if direction == OLDER:
            self.place = Place(position, index)
        elif index + 1 < len(found.entry.singles):
            self.place = Place(position, index + 1)
        else:
            self.place = Place(self.topic.ledger.next(position))

    def pass_entry(self, entry: OpenedEntry, direction: str) -> None:
        """Move the place behind an entry."""
        self.place = Place(self.topic.ledger.next(entry.position) if direction == NEWER else entry.position)


class Merge:
    """The messages of several parts in the order of their publish times. One entry at a time is opened."""

    def __init__(self, parts: Sequence[Part], direction: str, slice_: Slice) -> None:
        self.parts = parts
        self.direction = direction
        self.places = [part.start for part in parts]
        """Places up to which all messages were returned."""
        self._slice = slice_
        self._sign = -1 if direction == OLDER else 1
        self._heap: list[tuple[float, int]] = []  # publish time, number of the part
        self._times: dict[int, float] = {}  # publish times, also for the damaged entries that follow
        self._heads: dict[int, OpenedEntry] = {}
        self._begun = False
        self._open: deque[FoundMessage] = deque()  # the messages of the opened entry that are left
        self._number = 0  # of the part that has the opened entry

    async def next(self) -> FoundMessage | None:
        """Return the next message, or None at the end of all parts."""
        if not self._begun:
            self._begun = True
            for number in range(len(self.parts)):
                await self._load(number)
        while not self._open:
            if not self._heap:
                return None
            await self._open_next()
        found, part = self._open.popleft(), self.parts[self._number]
        part.pass_message(found, self.direction)
        passed = part.place
        if not self._open:
            await self._load(self._number)
        self.places[self._number] = passed
        return found

    async def _open_next(self) -> None:
        _, self._number = heappop(self._heap)
        entry, part = self._heads.pop(self._number), self.parts[self._number]
        await _open(entry, self._slice)
        self._open.extend(part.messages(entry, self.direction))
        if not self._open:
            part.pass_entry(entry, self.direction)
            await self._load(self._number)

    async def _load(self, number: int) -> None:
        found = await self.parts[number].next_entry(self.direction)
        await self._slice.pause()
        if found is not None:
            if found.metadata is not None:
                self._times[number] = self._sign * found.publish_ms
            self._heads[number] = found
            heappush(self._heap, (self._times.get(number, -math.inf), number))

    def skip_part(self) -> None:
        """Read no more of the part that the last message came from."""
        self._open.clear()
        if self._heads.pop(self._number, None) is not None:
            self._heap = [each for each in self._heap if each[1] != self._number]
            heapify(self._heap)

    @property
    def has_more(self) -> bool:
        return bool(self._open or self._heap)


async def opened_at(part: Part, position: Position, slice_: Slice) -> OpenedEntry | None:
    """Return one entry with its messages, or None for one that was deleted."""
    found = await _read(part.topic, part.index, position)
    if found is not None:
        await _open(found, slice_)
    return found


async def _read(topic: PersistentTopic, part: int, position: Position) -> OpenedEntry | None:
    """Return an entry with its metadata, or None for one that was deleted."""
    found = OpenedEntry(topic, part, position)
    try:
        entry = await entry_at(topic.ledger, position)
        if entry is None:
            return None
        found.entry = entry
        found.metadata = parse_metadata(entry)
    except (StorageError, ProtocolError) as error:
        found.damage = str(error)
    return found


async def _open(found: OpenedEntry, slice_: Slice) -> None:
    """Decompress an entry, and take a batch apart."""
    metadata = found.metadata
    if metadata is None:
        return
    await aside(partial(_decompress, found, metadata), size_of(found.entry))
    closed = found.damage or metadata.encryption_keys or metadata.HasField("marker_type")
    if closed or not metadata.HasField("num_messages_in_batch"):
        return
    try:
        for each in messages_of(found.payload, metadata.num_messages_in_batch):
            found.singles.append(each)
            await slice_.pause()
    except ProtocolError as error:
        found.damage, found.singles = str(error), []


def _decompress(found: OpenedEntry, metadata: pb.MessageMetadata) -> None:
    """Set the decompressed payload of an entry, or what is wrong with it."""
    try:
        payload = payload_of(found.entry)
        if not metadata.encryption_keys:
            payload = decompress(metadata.compression, payload, metadata.uncompressed_size)
        found.payload = payload
    except ProtocolError as error:
        found.damage = str(error)
