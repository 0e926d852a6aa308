"""What waits to be received of one topic, and the permits it takes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from pulsarium.client.connection.connection import Connection
from pulsarium.client.consumer import commands
from pulsarium.client.consumer.acknowledgements import Acknowledgements
from pulsarium.client.consumer.flow import OnDemand, Permits
from pulsarium.client.consumer.inbox import Inbox
from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class Waiting(NamedTuple):
    """In the queue: a message, or why there is none; either took one permit."""

    message_id: MessageId
    content: Message[Any] | Exception


class ReceiveQueue:
    """Messages, and the room for others that the broker is told of."""

    def __init__(
        self, consumer_id: int, options: ConsumerOptions[Any], acknowledgements: Acknowledgements, inbox: Inbox
    ) -> None:
        self.on_error: Callable[[MessageId], None] | None = None
        """Told of entries for which the application got an error."""
        self._consumer_id = consumer_id
        self._acknowledgements = acknowledgements
        self._inbox = inbox
        self._size = options.receiver_queue_size
        permits = Permits(self._size, paused=options.start_paused)
        self._permits = permits if self._size else OnDemand(paused=options.start_paused)
        self._queue: deque[Waiting] = deque()
        self._connection: Connection | None = None
        self._is_open = False

    def opened(self) -> None:
        """SUBSCRIBE was answered: ask for messages."""
        self._is_open = True
        self._flow(self._permits.opened())

    def __len__(self) -> int:
        """Messages that can be received at once."""
        return len(self._queue)

    def size(self) -> int:
        """Bytes of the messages that can be received at once."""
        return sum(len(content.data()) for _, content in self._queue if not isinstance(content, Exception))

    @property
    def is_full(self) -> bool:
        """Whether the broker must not send more."""
        return len(self._queue) >= self._size

    def offer_room(self) -> None:
        """Let the broker fill the queue: nothing is taken from it for a while."""
        self._flow(self._permits.rest())

    @contextmanager
    def wanted(self) -> Iterator[None]:
        """While somebody waits for a message; without a queue it is asked for then."""
        assert isinstance(self._permits, OnDemand)
        self._flow(self._permits.wait())
        try:
            yield
        finally:
            self._permits.waited()

    def pause(self) -> None:
        """Ask for no more messages."""
        self._permits.pause()

    def resume(self) -> None:
        """Ask for messages again."""
        self._flow(self._permits.resume())

    @property
    def head(self) -> Message[Any] | Exception:
        """What `take` would return or raise."""
        return self._queue[0].content

    def take(self) -> Message[Any]:
        """The next message of the queue, which must hold one; raises what is there instead."""
        waiting = self._queue.popleft()
        self._free(1)
        if isinstance(waiting.content, Exception):
            if self.on_error is not None:
                self.on_error(waiting.message_id)
            raise waiting.content
        return waiting.content

    def drop(self, entries: set[tuple[int, int]]) -> None:
        """Drop what waits of these entries."""
        kept = [waiting for waiting in self._queue if waiting.message_id.entry not in entries]
        self._free(len(self._queue) - len(kept))
        self._queue = deque(kept)
        for entry in entries:
            self._acknowledgements.forget(entry)

    def skip(self, message_id: MessageId) -> None:
        """Drop one message, if it waits."""
        kept = [waiting for waiting in self._queue if waiting.message_id != message_id]
        self._free(len(self._queue) - len(kept))
        self._queue = deque(kept)

    # ---- inside

    def _free(self, count: int) -> None:
        self._flow(self._permits.free(count))

    def _flow(self, permits: int) -> None:
        if permits > 0 and self._is_open:
            self._send(commands.flow(self._consumer_id, permits))

    def _send(self, command: pb.BaseCommand) -> None:
        if self._connection is not None:
            self._connection.send_nowait(command)
