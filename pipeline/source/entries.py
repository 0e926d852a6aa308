"""Read the entries of one split, in a task."""

from __future__ import annotations

from contextlib import AsyncExitStack

import anyio

from pulsarium.client import Client, Message, MessageId, PulsarError
from pulsarium.client.bulk import BYTES, EntryReader
from pulsarium.pipeline.entries.fields import Unusual
from pulsarium.pipeline.entries.rows import TakenEntry, nothing_of, take_apart
from pulsarium.pipeline.source.offsets import TopicRange
from pulsarium.pipeline.source.places import FIRST, ReadPosition
from pulsarium.pipeline.source.reading import PATIENCE, ReadError, Reading


class SplitEntries:
    """Reader of a split's entries, one after another."""

    def __init__(self, client: Client, split: TopicRange, reading: Reading) -> None:
        self._client = client
        self._split = split
        self._reading = reading
        self._schema = reading.columns.client_schema() or BYTES
        self._versions: dict[bytes, bool] = {b"": True}
        self._stack = AsyncExitStack()
        self._reader: EntryReader | None = None
        self._next = split.start
        """Position of the next entry, if there is one."""
        self._reopened_at: ReadPosition | None = None

    async def aclose(self) -> None:
        await self._stack.aclose()

    async def more(self, done: ReadPosition) -> list[Message[bytes]]:
        """Return the next entries, or an empty list when the topic has no more. Those before `done` are processed.

        Raise `ReadError` when none arrives in time.
        """
        while True:
            found = await self._arrived(done)
            gap = await self._expired(found)
            if gap is None:
                break
            number, self._reopened_at = gap
            found = found[:number]
            await self._open(self._reopened_at)
            if found:
                break
        if found:
            self._next = ReadPosition(*found[-1].message_id().entry).next_entry
        if self._schema.reads_by_writer:
            for entry in found:
                await self._learn(entry.schema_version())
        return found

    async def _arrived(self, done: ReadPosition) -> list[Message[bytes]]:
        reader = self._reader if self._reader is not None else await self._open(self._split.start)
        if done.entry > 0:
            reader.read_through(MessageId(done.ledger, done.entry - 1))
        came = anyio.current_time()
        while not reader:
            with anyio.move_on_after(PATIENCE):
                await reader.arrival()
            if not reader and (not await reader.has_more() or await self._expired([])):
                break
            if not reader and anyio.current_time() > came + self._reading.poll_timeout:
                raise ReadError(f"{self._split}: no message arrived at {done} within pollTimeoutMs: raise that option")
        return reader.take_all()

    async def _expired(self, found: list[Message[bytes]]) -> tuple[int, ReadPosition] | None:
        """Return where the broker left out entries because they expired: behind how many of `found`, and the position.

        Messages that expire, or are skipped, for a reader exist until their ledger is deleted. So a new reader gets
        them. Entries may be absent for another reason, such as an aborted transaction. Then the broker has not moved
        the reader.
        """
        number, expected = 0, self._next
        if found and found[-1].message_id().entry == (expected.ledger, expected.entry + len(found) - 1):
            return None
        while number < len(found):
            at = ReadPosition(*found[number].message_id().entry)
            if at[:2] != expected[:2] and FIRST < expected != self._reopened_at:
                break
            number, expected = number + 1, at.next_entry
        else:
            if found or not FIRST < expected < self._split.end or expected == self._reopened_at:
                return None
        assert self._reader is not None
        unread = await self._reader.first_unread()
        sent = found[0].message_id().entry if number else expected[:2]
        return (number, expected) if unread is not None and unread > sent else None

    def part(self, entry: Message[bytes]) -> TakenEntry | None:
        """Return the messages of an entry that the split has, or None for an entry behind the split.

        Raise `Unusual` for an entry that only a consumer can receive.
        """
        start, end, found = self._split.start, self._split.end, entry.message_id().entry
        if found > end[:2] or (found == end[:2] and not end.batch_index):
            return None
        if not self._versions.get(entry.schema_version(), not self._schema.reads_by_writer):
            raise Unusual("a message of another version of the schema")
        if not self._reading.selection.has_time(entry.publish_timestamp()):
            return nothing_of(entry)
        first = start.batch_index if found == start[:2] else 0
        return take_apart(entry, first, end.batch_index if found == end[:2] else None)

    async def _learn(self, version: bytes) -> None:
        """Find out whether a version of the schema is that of the reader."""
        if version in self._versions:
            return
        try:
            info = await self._client.get_schema(self._split.topic, version)
        except PulsarError:  # a consumer asks again
            return
        own = self._reading.columns.info
        self._versions[version] = own is not None and (info.type, info.data) == (own.type, own.data)

    async def _open(self, start: ReadPosition) -> EntryReader:
        await self._stack.aclose()
        reader = EntryReader(
            self._client,
            self._split.topic,
            MessageId.earliest if start == FIRST else start.message_id(),
            receiver_queue_size=self._reading.receiver_queue_size,
            consumer_name="spark",
        )
        self._reader = await self._stack.enter_async_context(reader)
        return reader
