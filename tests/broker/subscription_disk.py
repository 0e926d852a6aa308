"""The store under a history: commits and reads can be made to wait, and the broker above it can be killed."""

from __future__ import annotations

from tests.broker.held import HeldStorage


class Disk(HeldStorage):
    """Everything is kept at once, except between `hold` and `let_go`."""

    def hold(self, *, reads: bool) -> None:
        """Let commits wait; reads too, or not."""
        self.holding, self.holding_reads = True, reads

    def let_go(self) -> None:
        """Let them happen, in order, with what comes of them."""
        while self.waiting:
            self.release(1)
        self.release()
        self.release_reads()

    def left_behind(self) -> Disk:
        """What a broker that is killed now leaves: nothing of the commits that wait."""
        left = Disk()
        left.entries = {ledger_id: dict(entries) for ledger_id, entries in self.entries.items()}
        left.metadata = dict(self.metadata)
        return left
