"""Reading entries for a call, which waits for those that are not in memory. The loop does not."""

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
    """Let the rest of the broker have its turn, now and then in a long row of steps."""
    if number % SLICE == 0:
        await trio.lowlevel.checkpoint()


async def read_entry(ledger: LedgerSequence, position: Position) -> bytes:
    """An entry that is there. Raises why the store cannot read it; nothing waits when it is in memory."""
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
    """The entry there; None when there is none, also when it is deleted while it is read."""
    if not _is_there(ledger, position):
        return None
    try:
        return await read_entry(ledger, position)
    except StorageError:
        if _is_there(ledger, position):
            raise
        return None


def _is_there(ledger: LedgerSequence, position: Position) -> bool:
    """Whether an entry can be read; the ledgers of a deleted topic have no blocks any more."""
    return ledger.is_valid(position) and bool(ledger.ledgers[position.ledger_id].blocks)


async def follow(topic: PersistentTopic, begin: Callable[[], Reading[T]]) -> T:
    """What a reading of the topic finds; it begins anew when an entry that it wants is deleted meanwhile."""
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
    """What `read(ready)` gives; while that is None it is being loaded."""
    while True:
        ready = trio.Event()
        found = read(ready.set)
        if found is not None:
            return found
        await ready.wait()
