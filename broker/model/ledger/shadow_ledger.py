"""The managed ledger of a shadow topic (PIP-180): the entries of its source, which are stored once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pulsarium.broker.model.ledger.ledger import NO_RETENTION, Ledger, Retention
from pulsarium.broker.model.ledger.managed_ledger import NOBODY, LedgerListener, ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.proto.generated import MLDataFormats_pb2 as ml
from pulsarium.proto.topic_name import TopicName

NOWHERE = -1  # the ledger of a shadow that has no source


class ShadowLedger(ManagedLedger):
    """Shows another managed ledger up to the last entry that it was told of. Keeps its properties only."""

    def __init__(
        self, name: str, stores: Stores, kept: ml.ManagedLedgerInfo | None = None, listener: LedgerListener = NOBODY
    ) -> None:
        self.source: ManagedLedger | None = None
        self.listed_as = str(TopicName.from_managed_ledger(name).partitioned_name)  # in the policy of its source
        super().__init__(name, stores, kept, listener)

    @property
    def owned(self) -> Iterable[Ledger]:
        return ()

    def _open_ledger(self) -> None:
        self._hide()
        self._store_info()

    def _hide(self) -> None:
        """Have no entry."""
        self._current = Ledger(NOWHERE, self._cache, self._stores.clock.now_ms())
        self.ledgers = {NOWHERE: self._current}
        self.last_confirmed = Position(NOWHERE, -1)

    # the source

    def show(self, source: ManagedLedger) -> None:
        """Show what `source` has now, and follow it."""
        self.leave()
        self.source = source
        self.transactions = source.transactions
        source.shadows.append(self)
        self.ledgers = {}
        self.follow()

    def follow(self) -> None:
        """Show all that the source has by now."""
        assert self.source is not None
        before = self.last_confirmed
        for ledger in self.source.ledgers.values():
            if ledger.id >= before.ledger_id:
                self._current = self.ledgers[ledger.id] = ledger.view()
        self.last_confirmed = self.source.last_confirmed
        self.entries_added += self.count_after(before)
        self.listener.confirmed()

    def let_go(self, last: Position) -> None:
        """Show no entry up to `last` any more: the source deletes them."""
        if last >= self.last_confirmed:
            self.follow()
        self.listener.going(last)
        self.ledgers = {ledger.id: ledger for ledger in self.ledgers.values() if ledger.id > last.ledger_id}

    def leave(self) -> None:
        """Follow no source, and show nothing."""
        if self.source is not None:
            self.source.shadows.remove(self)
            self.source = None
        self._hide()

    # what is the source's business

    def reopen(self) -> None:
        self.entries_added = 0
        if self.fenced:
            self.fenced = False
            self._store_info()

    def roll_over_when_old(self) -> None:
        """Leave that to the source."""

    def trim(
        self,
        slowest: Position | None,
        retention: Retention = NO_RETENTION,
        going: Callable[[Position], None] = lambda last: None,
    ) -> None:
        """Leave that to the source: its entries stay for its own subscriptions."""

    def truncate(self, gone: Sequence[Ledger], going: Callable[[Position], None]) -> None:
        """Leave that to the source, too."""

    def forget(self) -> None:
        self.leave()
        super().forget()
