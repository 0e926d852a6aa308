"""The store under a random history. Its commits and reads can wait, and its broker can be killed."""

from __future__ import annotations

from tests.broker.held import HeldStorage


class Disk(HeldStorage):
    """A store that commits at once, except between `hold` and `let_go`."""

    def hold(self, *, reads: bool) -> None:
        """Let commits wait, and with `reads` also reads."""
        self.holding, self.holding_reads = True, reads

    def let_go(self) -> None:
        """Perform the waiting commits in order, with those that follow from them, and then the waiting reads."""
        while self.waiting:
            self.release(1)
        self.release()
        self.release_reads()

    def left_behind(self) -> Disk:
        """Return the store as a broker leaves it that is killed now: without the commits that wait."""
        left = Disk()
        left.entries = {ledger_id: dict(entries) for ledger_id, entries in self.entries.items()}
        left.metadata = dict(self.metadata)
        return left
