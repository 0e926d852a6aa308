"""Read entries for a call. The call waits for entries that are not in memory; the event loop does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import trio

from pulsarium.broker.model.errors import TopicNotFoundError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.sequence import LedgerSequence, Reading
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.storage.interface import DamagedEntriesError, StorageError

T = TypeVar("T")
SLICE = 64  # steps


async def pause_after(number: int) -> None:
    """Let other tasks run, once every SLICE steps."""
    if number % SLICE == 0:
        await trio.lowlevel.checkpoint()


async def read_entry(ledger: LedgerSequence, position: Position) -> bytes:
    """Return an existing entry, without a wait if it is in memory. Raise the store's error when it cannot be read."""
    found: list[bytes | Exception] = []
    arrived = trio.Event()

    def done(result: bytes | Exception) -> None:
        found.append(result)
        arrived.set()

    ledger.fetch(position, done)
    if not found:
        await arrived.wait()
    (result,) = found
    if isinstance(result, Exception):
        raise result
    return result


async def entry_at(ledger: LedgerSequence, position: Position) -> bytes | None:
    """Return an entry. Return None if it does not exist, or is deleted during the read."""
    if not _is_there(ledger, position):
        return None
    try:
        return await read_entry(ledger, position)
    except StorageError:
        if _is_there(ledger, position):
            raise
        return None


def _is_there(ledger: LedgerSequence, position: Position) -> bool:
    """Return whether an entry can be read. The ledgers of a deleted topic have no blocks."""
    return ledger.is_valid(position) and bool(ledger.ledgers[position.ledger_id].blocks)


async def follow(topic: PersistentTopic, begin: Callable[[], Reading[T]]) -> T:
    """Return the result of a reading, which starts again when one of its entries is deleted meanwhile."""
    looks = 0
    while not topic.closed:
        reading = begin()
        try:
            wanted = next(reading)
            while True:
                looks += 1
                await pause_after(looks)
                try:
                    entry = await entry_at(topic.ledger, wanted)
                except DamagedEntriesError as error:
                    wanted = reading.throw(error)
                    continue
                if entry is None:
                    break
                wanted = reading.send(entry)
        except StopIteration as end:
            found: Any = end.value
            return found  # type: ignore[no-any-return]
    raise TopicNotFoundError(f"Topic {topic.name} not found")


async def loaded(read: Callable[[Callable[[], None]], T | None]) -> T:
    """Return the result of `read(ready)`. While it is None, entries are being loaded."""
    while True:
        ready = trio.Event()
        found = read(ready.set)
        if found is not None:
            return found
        await ready.wait()
