"""Acknowledgements go out in groups: a command for each would cost the broker a turn for each."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from pulsarium.proto.generated import PulsarApi_pb2 as pb


class AckGroup:
    """Collects the ids of individual acknowledgements; a task runs only while there are any."""

    def __init__(
        self, tasks: TaskGroup, send: Callable[[list[pb.MessageIdData]], bool], delay: float = 0.01, most: int = 1000
    ) -> None:
        """`send` must not wait; where it says False there is no connection, and the ids wait for the next.

        `delay`: seconds an acknowledgement may wait for others; `most`: how many wait.
        """
        self._delay = delay
        self._most = most if delay else 1
        self._tasks = tasks
        self._send = send
        self._ids: list[pb.MessageIdData] = []
        self._scope: anyio.CancelScope | None = None

    def __len__(self) -> int:
        """How many wait."""
        return len(self._ids)

    def add(self, message_id: pb.MessageIdData) -> None:
        """Send it soon."""
        self._ids.append(message_id)
        if len(self._ids) >= self._most:
            self.flush()
        elif self._scope is None:
            self._scope = anyio.CancelScope()
            self._tasks.start_soon(self._flush_soon, self._scope)

    def take(self) -> list[pb.MessageIdData]:
        """All of them, for a caller who sends them."""
        ids, self._ids = self._ids, []
        return ids

    def flush(self) -> None:
        """Send what there is."""
        ids = self.take()
        if ids and not self._send(ids):
            self._ids = ids

    def close(self) -> None:
        """Send nothing more."""
        self._ids.clear()
        if self._scope is not None:
            self._scope.cancel()

    async def _flush_soon(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                await anyio.sleep(self._delay)
        finally:
            self._scope = None
        self.flush()
