"""Who a transaction is."""

from __future__ import annotations

from typing import NamedTuple


class TxnId(NamedTuple):
    """`most` is the coordinator's number, `least` counts its transactions."""

    most: int
    least: int

    def __str__(self) -> str:
        return f"({self.most},{self.least})"
