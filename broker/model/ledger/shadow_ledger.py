"""The managed ledger of a shadow topic (PIP-180), which shows the entries of its source topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pulsarium.broker.model.ledger.ledger import NO_RETENTION, Ledger, Retention
from pulsarium.broker.model.ledger.managed_ledger import NOBODY, LedgerListener, ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.proto.generated import MLDataFormats_pb2 as ml
from pulsarium.proto.topic_name import TopicName

NOWHERE = -1  # the ledger id of a shadow without a source


class ShadowLedger(ManagedLedger):
    """Show the entries of another managed ledger up to the last one that this ledger knows. Store only properties."""

    def __init__(
        self, name: str, stores: Stores, kept: ml.ManagedLedgerInfo | None = None, listener: LedgerListener = NOBODY
    ) -> None:
        self.source: ManagedLedger | None = None
        # the name in the shadow policy of the source
        self.listed_as = str(TopicName.from_managed_ledger(name).partitioned_name)
        super().__init__(name, stores, kept, listener)

    @property
    def owned(self) -> Iterable[Ledger]:
        return ()

    def _open_ledger(self) -> None:
        self._hide()
        self._store_info()

    def _hide(self) -> None:
        """Show no entries."""
        self._current = Ledger(NOWHERE, self._cache, self._stores.clock.now_ms())
        self.ledgers = {NOWHERE: self._current}
        self.last_confirmed = Position(NOWHERE, -1)

    # the source

    def show(self, source: ManagedLedger) -> None:
        """Show the current entries of `source`, and follow its new ones."""
        self.leave()
        self.source = source
        self.transactions = source.transactions
        source.shadows.append(self)
        self.ledgers = {}
        self.follow()

    def follow(self) -> None:
        """Show all entries that the source has now."""
        assert self.source is not None
        before = self.last_confirmed
        for ledger in self.source.ledgers.values():
            if ledger.id >= before.ledger_id:
                self._current = self.ledgers[ledger.id] = ledger.view()
        self.last_confirmed = self.source.last_confirmed
        self.entries_added += self.count_after(before)
        self.listener.confirmed()

    def let_go(self, last: Position) -> None:
        """Hide the entries up to `last`, because the source deletes them."""
        if last >= self.last_confirmed:
            self.follow()
        self.listener.going(last)
        self.ledgers = {ledger.id: ledger for ledger in self.ledgers.values() if ledger.id > last.ledger_id}

    def leave(self) -> None:
        """Stop following the source, and show no entries."""
        if self.source is not None:
            self.source.shadows.remove(self)
            self.source = None
        self._hide()

    # only the source does this

    def reopen(self) -> None:
        self.entries_added = 0
        if self.fenced:
            self.fenced = False
            self._store_info()

    def roll_over_when_old(self) -> None:
        """Do nothing: the source rolls over."""

    def trim(
        self,
        slowest: Position | None,
        retention: Retention = NO_RETENTION,
        going: Callable[[Position], None] = lambda last: None,
    ) -> None:
        """Do nothing: the source trims, and its own subscriptions decide."""

    def truncate(self, gone: Sequence[Ledger], going: Callable[[Position], None]) -> None:
        """Do nothing: the source truncates."""

    def forget(self) -> None:
        self.leave()
        super().forget()
