"""Hold the entries of a consumer, in their order, while a key is awaited that decrypts the first of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import anyio
from anyio.abc import TaskGroup

from pulsarium.client.entry.decoding import Decoder
from pulsarium.client.entry.encryption import KeyAwaited
from pulsarium.proto.generated import PulsarApi_pb2 as pb

Entry: TypeAlias = tuple[pb.CommandMessage, bytes]


class HeldEntries:
    """The entries behind an awaited key. Without one, each entry goes to its receiver at once."""

    def __init__(
        self,
        decoder: Decoder,
        tasks: TaskGroup,
        receive: Callable[[pb.CommandMessage, bytes], None],
        end: Callable[[], None],
    ) -> None:
        """Pass entries to `receive`, which may raise `KeyAwaited`, and the end of the topic to `end`."""
        self._decoder = decoder
        self._tasks = tasks
        self._receive = receive
        self._end = end
        self._entries: deque[Entry] = deque()
        self._ends = False
        self._scope: anyio.CancelScope | None = None  # of the task that awaits the key

    def __len__(self) -> int:
        """Return the number of entries that wait."""
        return len(self._entries)

    def on_message(self, command: pb.CommandMessage, trailing: bytes) -> None:
        """Receive an entry, now or after the entries that wait."""
        if self._entries:
            self._entries.append((command, trailing))
            return
        try:
            self._receive(command, trailing)
        except KeyAwaited as awaited:
            self._entries.append((command, trailing))
            self._scope = anyio.CancelScope()
            self._tasks.start_soon(self._go_on, awaited, self._scope)

    def on_end_of_topic(self) -> None:
        """Tell the end of the topic, now or after the entries that wait."""
        self._ends = bool(self._entries)
        if not self._ends:
            self._end()

    def clear(self) -> list[Entry]:
        """Stop waiting, and return the entries that waited."""
        if self._scope is not None:
            self._scope.cancel()
        entries = [*self._entries]
        self._entries.clear()
        self._ends = False
        return entries

    async def _go_on(self, awaited: KeyAwaited, scope: anyio.CancelScope) -> None:
        """Receive the entries that wait, after the key and all further keys that they need."""
        with scope:
            wanted: KeyAwaited | None = awaited
            while wanted is not None:
                await self._decoder.fetch(wanted)
                if scope.cancel_called:  # canceled after the key had come: the entries may be those of another task
                    return
                wanted = self._receive_all()

    def _receive_all(self) -> KeyAwaited | None:
        """Receive the entries up to one that needs a further key, and return this key."""
        while self._entries:
            entry = self._entries.popleft()
            try:
                self._receive(*entry)
            except KeyAwaited as awaited:
                self._entries.appendleft(entry)
                return awaited
        if self._ends:
            self._ends = False
            self._end()
        return None
