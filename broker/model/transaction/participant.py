"""What a transaction ends on."""

from __future__ import annotations

from typing import Protocol

from pulsarium.proto.txn_id import TxnId


class Participant(Protocol):
    """A topic's transaction buffer, or the pending acknowledgements of a subscription."""

    def end(self, txn: TxnId, *, commit: bool, low_watermark: int) -> None:
        """The transaction is over; nothing happens where it left nothing. What changes is noted for this turn's commit.

        All transactions of the same coordinator up to `low_watermark` are over too. Raises BrokerServiceError where it
        cannot be done now, and then nothing changed.
        """
