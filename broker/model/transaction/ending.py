"""The end of a transaction: part after part, for a slice of the event loop's time in each turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pulsarium.broker.model.transaction.transaction import RECORD, Transaction, TransactionPart


class Ending:
    """The parts that a transaction has still to end, acknowledgements first."""

    def __init__(self, transaction: Transaction, end: Callable[[TransactionPart, Transaction], bool]) -> None:
        self.transaction = transaction
        self.steps = self._steps()
        self.tried: list[Callable[[], None]] = []  # called when each part has ended, or has to be tried again later
        self._end = end  # ends a part, or returns False for one that has to be tried again later
        self._ended: dict[int, set[TransactionPart]] = {}  # by page, since the last call of `left`

    def _steps(self) -> Iterator[None]:
        transaction = self.transaction
        ended: set[TransactionPart] = set()  # a part may be in two pages, and ends once
        for number, parts in transaction.in_order():
            for part in parts:
                if part in ended or self._end(part, transaction):
                    self._ended.setdefault(number, set()).add(part)
                    if transaction.pages:
                        ended.add(part)
                yield

    def left(self) -> Transaction:
        """Return the transaction with the parts that have not ended."""
        now, ended, self._ended = self.transaction, self._ended, {}
        own = ended.pop(RECORD, None)
        if own is not None:
            now = replace(now, parts=now.parts - own)
        if ended:
            pages = dict(now.pages)
            for number, parts in ended.items():
                pages[number] = tuple(part for part in pages[number] if part not in parts)
                if not pages[number]:
                    del pages[number]
            now = replace(now, pages=pages)
        self.transaction = now
        return now
