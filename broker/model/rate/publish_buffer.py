"""Limit the published bytes that the store has not written yet (maxMessagePublishBufferSizeInMB)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from weakref import ref

import trio

from pulsarium.broker.model.ledger.ledger import EntryCache
from pulsarium.broker.model.rate.rates import RatedPublisher
from pulsarium.broker.turn import Turn

OF_ONE_CONNECTION = 2 << 20
"""Most unstored bytes of a connection that publishes alone: enough to keep a disk busy."""

BESIDE_OTHERS = 128 << 10
"""Most unstored bytes of a connection while others publish too: few enough for the others to wait behind."""

LARGEST_READ = 256 << 10
"""Most bytes of one read, and so of one turn."""

READ_BESIDE_OTHERS = 64 << 10
"""Most bytes of one read while several connections publish: others wait for a turn, and for its commit."""

READS_ALONE = 256
"""Reads of one connection in a row, until the connection counts as alone again."""


class PublishBuffer:
    """Entries on their way to the store, or without a data directory, entries beyond the cache's limit.

    Above `most` bytes, connections that publish pause, and go on when half is stored, as in Pulsar. Other commits wait
    behind these entries, so the limit bounds their delay. Each connection also has a share of its own, so that one
    flood does not delay all clients. While several connections publish, shares and reads are small.
    """

    def __init__(self, turn: Turn, cache: EntryCache, most: int) -> None:
        """Limit the buffer to `most` bytes; 0 is no limit."""
        self._turn = turn
        self._cache = cache
        self._most = most
        self._share = min(most, OF_ONE_CONNECTION)
        self._last: Callable[[], RatedPublisher | None] = lambda: (
            None
        )  # the connection that published last, if still open
        self.largest_read = LARGEST_READ  # of each connection
        self._until_alone = 0  # reads of that connection, until no other counts as publishing
        self._of: dict[RatedPublisher, int] = {}  # bytes that were read and are not stored yet
        self._above_share: set[RatedPublisher] = set()
        self._waiting: dict[RatedPublisher, None] = {}
        self._token = trio.lowlevel.current_trio_token()
        cache.spill_listeners.append(self.review)

    @property
    def size(self) -> int:
        """Return the number of bytes that are not stored yet."""
        return max(self._turn.unstored, self._cache.size - self._cache.limit)

    def published(self, client: RatedPublisher, size: int) -> None:
        """Note that a connection published messages in a read of `size` bytes."""
        if not self._most:
            return
        if client is not self._last() or self._until_alone:
            self._count(client)
        own = self._of[client] = self._of.get(client, 0) + size
        self._turn.after_commit(partial(self._stored, client, size))
        if own > self._share and client not in self._above_share:
            self._above_share.add(client)
            client.pause_reading()
        if self.size > self._most and client not in self._waiting:
            self._waiting[client] = None
            client.pause_reading()

    def _count(self, client: RatedPublisher) -> None:
        """Set the share of each connection by whether others published lately."""
        last = self._last()
        if client is last:
            self._until_alone -= 1
        elif last is not None:
            self._until_alone = READS_ALONE
        self._last = ref(client)
        self._share = min(self._most, BESIDE_OTHERS if self._until_alone else OF_ONE_CONNECTION)
        self.largest_read = READ_BESIDE_OTHERS if self._until_alone else LARGEST_READ

    def _stored(self, client: RatedPublisher, size: int, error: Exception | None) -> None:
        own = self._of.pop(client) - size
        if own:
            self._of[client] = own
        if client in self._above_share and own <= self._share // 2:
            self._above_share.remove(client)
            self._go_on(client)

    def review(self) -> None:
        """Resume connections, if enough is stored. Called after each turn, and when the cache has spilled."""
        if self._waiting and self.size <= self._most // 2:
            waiting, self._waiting = self._waiting, {}
            for client in waiting:
                self._go_on(client)

    def _go_on(self, client: RatedPublisher) -> None:
        self._token.run_sync_soon(client.resume_reading)  # in its own turn
