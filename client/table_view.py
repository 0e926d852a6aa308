"""A topic as a table of the last value of each key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import TypeAlias

import anyio
import anyio.lowlevel

from pulsarium.client.blocks import Opening
from pulsarium.client.consumer.options import TableViewOptions
from pulsarium.client.consumer.reader import Reader, ReaderPosition
from pulsarium.client.consumer.receiver import Onlooker
from pulsarium.client.core import Core
from pulsarium.client.message import Message
from pulsarium.client.schema.schema import T

Listener: TypeAlias = Callable[[str, T | None], object]


class _Progress(Onlooker):
    """Wake tasks that wait for a view's progress."""

    def __init__(self) -> None:
        self.made = anyio.Event()

    def nothing(self, entry: tuple[int, int] | None) -> None:
        self.made.set()
        self.made = anyio.Event()


class TableView(Opening, Mapping[str, T]):
    """A mapping of each key of a topic to its last value, made by `Client.create_table_view`.

    The view is open inside its `async with` block, which begins when the view holds all messages of the topic. From
    then on the view follows the topic, including new partitions and through reconnections. A message without a value,
    or with an empty one, deletes its key. Messages without a key are ignored.

    An exception of a listener, a message that cannot be decrypted, or the broker's refusal of a new connection ends
    the block with this error. A value that does not fit the schema raises `InvalidMessage` when it is read.
    """

    def __init__(self, core: Core, options: TableViewOptions[T]) -> None:
        """Prepare the view without sending anything. Raise `InvalidTopicName` for an invalid topic."""
        self._tasks = core.brokers.task_group
        self._progress = _Progress()
        self._reader = Reader(core, options, self._progress)
        self._messages: dict[str, Message[T]] = {}
        self._listeners: list[Listener[T]] = []
        self._error: Exception | None = None
        self._block = AsyncExitStack()

    async def __aenter__(self) -> TableView[T]:
        await self._block.enter_async_context(self._open())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._block.__aexit__(kind, error, traceback)

    # ---- the table

    def __getitem__(self, key: str) -> T:
        return self._messages[key].value()

    def __contains__(self, key: object) -> bool:
        return key in self._messages

    def __iter__(self) -> Iterator[str]:
        """Return an iterator over the keys. Await nothing during the iteration, because the view changes then."""
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def __repr__(self) -> str:
        return f"<TableView of {self._reader.topic()}: {len(self)} keys>"

    def topic(self) -> str:
        """Return the full name of the topic."""
        return self._reader.topic()

    # ---- following the topic

    def for_each(self, action: Callable[[str, T], object]) -> None:
        """Call `action` with each key and value of this moment."""
        for key, value in list(self.items()):
            action(key, value)

    def listen(self, action: Listener[T]) -> None:
        """Call `action` with the key and value of each further message, and None as value of a deleted key.

        The action is called on the event loop and must not block.
        """
        self._listeners.append(action)

    def for_each_and_listen(self, action: Listener[T]) -> None:
        """Call `for_each` and then `listen`. No message is missed in between."""
        self.for_each(action)
        self.listen(action)

    async def refresh(self) -> None:
        """Wait until the view holds all messages that are in the topic now.

        Raise the error with which the broker refuses.
        """
        await anyio.lowlevel.checkpoint()
        for part in self._reader._consumer._parts.all:
            if not part.topic.startswith("persistent:"):
                continue  # a non-persistent topic stores no messages
            last, done = await part.last_message()
            place = ReaderPosition(part, 1, inclusive=False)
            while place.is_before(last, done):
                await self._progress.made.wait()
        await anyio.lowlevel.checkpoint()  # raises the cancellation if the view has ended meanwhile

    # ---- private

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        async with self._reader:
            reading = anyio.CancelScope()
            with anyio.CancelScope() as block:
                self._tasks.start_soon(self._follow, reading, block)
                try:
                    await self.refresh()
                    yield
                finally:
                    reading.cancel()
            if self._error is not None:
                raise self._error

    async def _follow(self, reading: anyio.CancelScope, block: anyio.CancelScope) -> None:
        try:
            with reading:
                while True:
                    for message in await self._reader._some():
                        self._apply(message)
                        self._progress.nothing(None)
        except Exception as error:
            self._error = error
            block.cancel()

    def _apply(self, message: Message[T]) -> None:
        if not message.has_partition_key():
            return
        key = message.partition_key()
        if message.data():
            self._messages[key] = message
        else:
            self._messages.pop(key, None)
        for listener in self._listeners:
            listener(key, message.value() if message.data() else None)
