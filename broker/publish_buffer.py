"""How much may be published that the store has not taken yet (maxMessagePublishBufferSizeInMB)."""

from __future__ import annotations

from functools import partial

import trio

from pulsarium.broker.model.ledger.cache import EntryCache
from pulsarium.broker.model.rate.rates import Publisher
from pulsarium.broker.turn import Turn

OF_ONE_CONNECTION = 2 << 20
"""Bytes that one connection may have on its way: enough to keep a disk busy, few enough to wait behind."""


class PublishBuffer:
    """Entries on their way to the store; without a data directory those that the cache has no room for any more.

    With more than `most` bytes of them, connections that publish pause, as in Pulsar; they go on when half is stored.
    Whoever else waits for a commit waits behind these: the buffer says how long at most. So that a single flood is not
    felt by everybody else, each connection has a share of its own, too.
    """

    def __init__(self, turn: Turn, cache: EntryCache, most: int) -> None:
        """`most`: 0 for any number."""
        self._turn = turn
        self._cache = cache
        self._most = most
        self._share = min(most, OF_ONE_CONNECTION)
        self._of: dict[Publisher, int] = {}  # bytes that were read and are not stored yet
        self._above_share: set[Publisher] = set()
        self._waiting: dict[Publisher, None] = {}
        self._token = trio.lowlevel.current_trio_token()
        cache.when_spilled = self.review

    @property
    def size(self) -> int:
        """Bytes that are not stored yet."""
        return max(self._turn.unstored, self._cache.size - self._cache.limit)

    def published(self, client: Publisher, size: int) -> None:
        """A connection published something, in a read of so many bytes."""
        if not self._most:
            return
        own = self._of[client] = self._of.get(client, 0) + size
        self._turn.after_commit(partial(self._stored, client, size))
        if own > self._share and client not in self._above_share:
            self._above_share.add(client)
            client.pause_reading()
        if self.size > self._most and client not in self._waiting:
            self._waiting[client] = None
            client.pause_reading()

    def _stored(self, client: Publisher, size: int, error: Exception | None) -> None:
        own = self._of.pop(client) - size
        if own:
            self._of[client] = own
        if own <= self._share // 2 and client in self._above_share:
            self._above_share.remove(client)
            self._go_on(client)

    def review(self) -> None:
        """A turn ended, or what the cache had no room for was spilled."""
        if self._waiting and self.size <= self._most // 2:
            waiting, self._waiting = self._waiting, {}
            for client in waiting:
                self._go_on(client)

    def _go_on(self, client: Publisher) -> None:
        self._token.run_sync_soon(client.resume_reading)  # in a turn of its own
