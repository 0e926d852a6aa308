"""How acknowledgements in transactions are kept: each ACK as one piece of metadata, a commit as one that names them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from pulsarium.broker.model.cursor.acked import Acked
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId

if TYPE_CHECKING:
    from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
    from pulsarium.broker.model.ledger.stores import Stores

USED = "used"  # a name beside the numbers of ACKs: there were transactions
COMMIT = "commit-"  # and the number of its first ACK: a transaction that is committed, and its ACKs


@dataclass(frozen=True, slots=True)
class Piece:
    """One ACK in a transaction."""

    txn: TxnId
    acks: Sequence[Acked]
    cumulative: bool = False

    def pack(self) -> bytes:
        ack_type = pb.CommandAck.Cumulative if self.cumulative else pb.CommandAck.Individual
        most, least = self.txn
        kept = pb.CommandAck(consumer_id=0, ack_type=ack_type, txnid_most_bits=most, txnid_least_bits=least)
        for each in self.acks:
            each.fill(kept.message_id.add())
        return kept.SerializeToString()

    @classmethod
    def unpack(cls, value: bytes) -> Piece:
        kept = pb.CommandAck.FromString(value)
        acks = [Acked.of(message_id) for message_id in kept.message_id]
        return cls(TxnId(kept.txnid_most_bits, kept.txnid_least_bits), acks, kept.ack_type == pb.CommandAck.Cumulative)


Pieces = dict[int, Piece]


class PendingRecord:
    """What the store has of one subscription. Of one that is not durable it has nothing."""

    def __init__(self, cursor: ManagedCursor, stores: Stores) -> None:
        self.began_ms = 0  # when it was first used, or recovered; 0: there never were transactions
        self.written = 0  # pieces so far
        self._cursor = cursor
        self._stores = stores
        self._keeps = cursor.durable and stores.storage.keeps_entries
        self._names: set[str] = set()  # what the store may have
        self._applied: set[str] = set()  # of those, what the next save of the cursor lets go

    @property
    def path(self) -> str:
        return f"/transactions/pending-acks/{self._cursor.ledger.name}/{quote(self._cursor.name, safe='')}"

    def begin_use(self) -> None:
        """There are transactions from now on."""
        if not self.began_ms:
            self.began_ms = self._stores.clock.now_ms()
            self._store(USED, b"")

    def add(self, piece: Piece) -> int:
        """Persist point: the ACK. Its number."""
        number, self.written = self.written, self.written + 1
        self._store(str(number), piece.pack() if self._keeps else b"")
        return number

    def commit(self, pieces: Pieces) -> None:
        """Persist point: the transaction of these is committed."""
        self._store(_commit_name(pieces), ",".join(map(str, pieces)).encode())

    def let_go(self, pieces: Pieces) -> None:
        """Persist point: the transaction of these is aborted."""
        self._delete(tuple(map(str, pieces)))

    def applied(self, pieces: Pieces) -> None:
        """The cursor has what was committed, but was not saved since."""
        if self._keeps:
            self._applied |= {*map(str, pieces), _commit_name(pieces)}

    def forget_applied(self) -> None:
        """The cursor is saved: let go of that with the same commit."""
        if self._applied:
            applied, self._applied = self._applied, set()
            self._delete(applied)
            self._stores.turn.after_commit(partial(self._forgotten, applied))

    def _forgotten(self, applied: set[str], error: Exception | None) -> None:
        if error is not None:
            self._applied |= applied

    def delete(self) -> None:
        """The subscription is gone."""
        self._delete(tuple(self._names))

    def _delete(self, names: Collection[str]) -> None:
        if self._keeps:
            for name in names:
                self._store(name, None)
            self._stores.turn.after_commit(partial(self._deleted, names))

    def _deleted(self, names: Collection[str], error: Exception | None) -> None:
        if error is None:
            self._names.difference_update(names)

    def _store(self, name: str, value: bytes | None) -> None:
        if self._keeps:
            self._names.add(name)
            self._stores.turn.store(f"{self.path}/{name}", value)

    def recover(self) -> tuple[Pieces, list[list[int]]]:
        """All ACKs, and the numbers of those that were committed together and not applied."""
        kept = dict(self._stores.recovered_under(self.path))
        self._names = set(kept)
        if kept.pop(USED, None) is not None:
            self.began_ms = self._stores.clock.now_ms()
        commits = [kept.pop(name) for name in list(kept) if name.startswith(COMMIT)]
        pieces = {number: Piece.unpack(kept[str(number)]) for number in sorted(map(int, kept))}
        self.written = max(pieces, default=-1) + 1
        return pieces, [list(map(int, numbers.split(b","))) for numbers in commits]


def _commit_name(pieces: Iterable[int]) -> str:
    return f"{COMMIT}{min(pieces)}"
