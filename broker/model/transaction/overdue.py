"""Which open transactions are over, as their coordinators' low watermarks say."""

from __future__ import annotations

from collections.abc import Set

from pulsarium.proto.txn_id import TxnId


class Overdue:
    """Finds them without looking at all that are open: the watermark rises by about one with each end."""

    def __init__(self) -> None:
        self._reached: dict[int, int] = {}  # the highest watermark of each coordinator
        self._late: dict[int, set[TxnId]] = {}  # of each those that were opened below it

    def opened(self, txn: TxnId) -> None:
        """Something was done in a transaction, which may be over."""
        if txn.least <= self._reached.get(txn.most, -1):
            self._late.setdefault(txn.most, set()).add(txn)

    def taken_back(self, most: int) -> None:
        """An end of this coordinator's is not kept, and so its watermark may have been too high: look at all again."""
        self._reached.pop(most, None)
        self._late.pop(most, None)

    def take(self, most: int, low_watermark: int, among: Set[TxnId]) -> list[TxnId]:
        """Those of a coordinator that are over, `among` the open ones, each once; in order."""
        reached = self._reached.get(most, -1)
        self._reached[most] = max(reached, low_watermark)
        found = self._late.pop(most, set()) & among
        if low_watermark - reached <= len(among):
            found |= {TxnId(most, least) for least in range(reached + 1, low_watermark + 1)} & among
        else:
            found |= {each for each in among if each.most == most and reached < each.least <= low_watermark}
        return sorted(found)
