"""Pending acknowledgements: acknowledgements in open transactions, which take effect with the commit.

Until the transaction ends, the broker does not deliver the acknowledged messages. Another transaction cannot
acknowledge them, but an ACK without a transaction can. The store has one piece of metadata for each ACK. A commit is
stored first and then applied to the cursor, whose next save deletes both. So memory and store agree after each failed
commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from pulsarium.broker.model.cursor.pending_record import Acked, Holders, PendingRecord, Piece, Pieces, left_by
from pulsarium.broker.model.errors import TransactionConflictError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.message_id import TxnId

if TYPE_CHECKING:
    from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
    from pulsarium.broker.model.ledger.stores import Stores


@dataclass(frozen=True, slots=True)
class PendingAckStats:
    """Stats of the pending acknowledgements of a subscription, as Pulsar reports them."""

    began_ms: int  # time in milliseconds of the first use or recovery; 0 without transactions
    ongoing: int  # transactions with individual acknowledgements
    low_watermarks: Mapping[int, int]  # by coordinator

    @property
    def state(self) -> str:
        return "Ready" if self.began_ms else "None"


class Acknowledging(Protocol):
    """The subscription of a cursor whose topic is loaded."""

    @property
    def shares_messages(self) -> bool: ...

    def acknowledge(
        self,
        consumer: None,
        positions: Sequence[Position],
        parts: Iterable[tuple[Position, Sequence[int]]],
        *,
        save_now: bool,
    ) -> None: ...

    def acknowledge_through(self, position: Position, ack_set: Sequence[int], *, save_now: bool) -> None: ...

    def give_back(self, positions: Sequence[Position]) -> None:
        """Redeliver these entries at once, because the transaction that acknowledged them was aborted."""
        ...


class PendingAcks:
    """The acknowledgements of open transactions on one subscription. They survive an unload, as the cursor does."""

    def __init__(self, cursor: ManagedCursor, stores: Stores) -> None:
        self.record = PendingRecord(cursor, stores)
        self.low_watermarks: dict[int, int] = {}  # by coordinator
        self._cursor = cursor
        self._stores = stores
        self._subscription: Acknowledging | None = None
        self._topic = ""  # the topic's name, once the subscription is attached
        self._pieces: Pieces = {}  # all pieces below, by number
        self._open: dict[TxnId, Pieces] = {}
        self._overdue = Overdue()
        self._holders = Holders()  # also of transactions that are ending
        self._through: Pieces = {}  # cumulative acknowledgements of one transaction, in ascending order
        self._committed: list[Pieces] = []  # committed transactions that wait for a subscription to apply them to
        self._gone = False

    def __bool__(self) -> bool:
        """Return whether any acknowledgement is pending."""
        return bool(self._pieces)

    # acknowledging

    def acknowledge(self, txn: TxnId, acks: Sequence[Acked]) -> None:
        """Acknowledge all these entries in a transaction, or none. Raise `TransactionConflictError` on a conflict."""
        self.record.begin_use()
        for each in acks:
            self._check(txn, each)
        if acks:
            self._add(Piece(txn, acks))

    def acknowledge_through(self, txn: TxnId, ack: Acked) -> None:
        """Acknowledge everything up to an entry, or to a message in it, in a transaction.

        Raise `TransactionConflictError` on a conflict.
        """
        self.record.begin_use()
        mark = self._cursor.mark_delete
        where = ack.text if ack.remaining is not None else str(ack.position)
        tries = f"{self._who(txn)} try to cumulative"
        if ack.position <= mark:
            raise TransactionConflictError(
                f"{tries} ack position: {where} within range of cursor's markDeletePosition: {mark}"
            )
        if self._through:
            current = next(reversed(self._through.values()))
            reached = current.acks[0]
            if current.txn != txn or not ack.is_beyond(reached):
                at = reached.text if reached.remaining is not None else str(reached.position)
                raise TransactionConflictError(
                    f"{tries} batch ack position: {where} within range of current currentPosition: {at}"
                )
        self._add(Piece(txn, (ack,), cumulative=True))

    def _check(self, txn: TxnId, ack: Acked) -> None:
        """Raise `TransactionConflictError` for an entry that is acknowledged already.

        As in Pulsar, individual acknowledgements do not conflict with pending cumulative ones.
        """
        cursor, position = self._cursor, ack.position
        done = cursor.batch_acks.bits(position)
        if cursor.is_acked(position) or (ack.remaining is not None and done is not None and ack.overlaps(done)):
            raise TransactionConflictError(f"{self._who(txn)} try to ack message:{ack.text} already acked before.")
        left = self._holders.left_of(position)
        if ack.remaining is None:
            shares = self._subscription is not None and self._subscription.shares_messages
            if left is not None or (shares and done is not None):
                raise TransactionConflictError(f"{self._who(txn)} try to ack message:{ack.text} in pending ack status.")
        elif left is not None and ack.overlaps(left):
            raise TransactionConflictError(
                f"{self._who(txn)} try to ack batch message:{ack.text} in pending ack status."
            )

    def _who(self, txn: TxnId) -> str:
        return f"[{self._topic}][{self._cursor.name}] Transaction:{txn}"

    def _add(self, piece: Piece) -> None:
        number = self.record.add(piece)
        self._hold(number, piece)
        self._stores.turn.after_commit(partial(self._kept, number, piece))

    def _hold(self, number: int, piece: Piece) -> None:
        self._pieces[number] = piece
        self._of(piece.txn)[number] = piece
        if piece.cumulative:
            self._through[number] = piece
            return
        for each in piece.acks:
            self._holders.add(number, each)

    def _kept(self, number: int, piece: Piece, error: Exception | None) -> None:
        """Persist point: the ACK. Withdraw the acknowledgements when the commit fails."""
        if error is not None:
            self._withdraw(number, piece.txn)
            self._give_back({number: piece})

    def _withdraw(self, number: int, txn: TxnId) -> None:
        """Remove a piece from its open transaction."""
        pieces = self._open.get(txn, {})
        pieces.pop(number, None)
        if not pieces:
            self._open.pop(txn, None)

    def _release(self, pieces: Pieces) -> None:
        """Remove these pieces."""
        for number, piece in pieces.items():
            self._pieces.pop(number, None)
            self._through.pop(number, None)
            for each in () if piece.cumulative else piece.acks:
                self._holders.remove(number, each.position)

    # reading

    def left_of(self, position: Position, left: int | None) -> int | None:
        """Return those bits of `left` that no transaction has acknowledged. None is all of the entry."""
        pending = self._holders.left_of(position)
        if pending is None or left is None:
            return left if pending is None else pending
        return left & pending

    def forget(self, positions: Iterable[Position]) -> None:
        """Forget the pending acknowledgements of entries that were acknowledged without a transaction."""
        for position in positions:
            self._holders.forget(position)

    def holders_of(self, position: Position) -> list[tuple[TxnId, Acked]]:
        """Return the transactions that acknowledged an entry or parts of it, with these parts.

        A transaction may repeat.
        """
        return [(self._pieces[number].txn, acked) for number, acked in self._holders.of(position).items()]

    def cumulative_of(self, txn: TxnId) -> Acked | None:
        """Return the position up to which a transaction acknowledged everything, or None."""
        last = next(reversed(self._through.values()), None)
        return last.acks[0] if last is not None and last.txn == txn else None

    def acknowledged_by(self, position: Position, index: int = -1) -> list[TxnId]:
        """Return the transactions that acknowledged an entry together, or the message at `index` of its batch."""
        found = self.holders_of(position)
        for piece in self._through.values():
            reached = piece.acks[0]
            if reached.position >= position:
                beyond = reached if reached.position == position else Acked(position)
                found.append((piece.txn, beyond))
        if index >= 0:
            found = [(txn, acked) for txn, acked in found if not (acked.remaining or 0) >> index & 1]
        elif found:
            left, done = left_by(acked for _, acked in found), self._cursor.batch_acks.bits(position)
            if left if done is None else left & done:
                return []
        return list(dict.fromkeys(txn for txn, _ in found))

    def stats(self) -> PendingAckStats:
        """Return the stats of the pending acknowledgements."""
        individual = [pieces for pieces in self._open.values() if not all(each.cumulative for each in pieces.values())]
        return PendingAckStats(self.record.began_ms, len(individual), dict(self.low_watermarks))

    # the end of a transaction

    def end(self, txn: TxnId, *, commit: bool, low_watermark: int) -> None:
        """End a transaction, as `Participant.end` does."""
        if self._gone:
            return
        self.record.begin_use()
        if txn in self._open:
            self.low_watermarks[txn.most] = max(low_watermark, self.low_watermarks.get(txn.most, low_watermark))
            pieces = self._open.pop(txn)
            if commit:
                self.record.commit(pieces)
            else:
                self.record.let_go(pieces)
            self._stores.turn.after_commit(partial(self._ended, pieces, commit))
        overdue = self._overdue.take(txn.most, low_watermark, self._open.keys())
        for each in overdue:  # these were acknowledged after the end of their transaction, or in one that never existed
            pieces = self._open.pop(each)
            self.record.let_go(pieces)
            self._stores.turn.after_commit(partial(self._ended, pieces, False))

    def _of(self, txn: TxnId) -> Pieces:
        """Return the pieces of a transaction, and open the transaction when it is new."""
        found = self._open.get(txn)
        if found is None:
            found = self._open[txn] = {}
            self._overdue.opened(txn)
        return found

    def _ended(self, pieces: Pieces, commit: bool, error: Exception | None) -> None:
        """Persist point: the end. Open the transaction again when the commit fails."""
        if error is not None:
            for txn in {piece.txn for piece in pieces.values()}:
                self._overdue.taken_back(txn.most)
            for number in sorted(pieces.keys() & self._pieces.keys()):
                piece = pieces[number]
                self._of(piece.txn)[number] = piece
        elif commit:
            self._apply(pieces)
        else:
            self._give_back(pieces)

    def _apply(self, pieces: Pieces) -> None:
        """Acknowledge the entries of a committed transaction, or note them until the topic is loaded."""
        subscription = self._subscription
        if subscription is None or self._gone:
            self._committed.append(pieces)
            return
        self._release(pieces)
        in_parts = self._stores.config.acknowledgmentAtBatchIndexLevelEnabled
        whole: list[Position] = []
        parts: list[tuple[Position, Sequence[int]]] = []
        self.record.applied(pieces)
        for piece in pieces.values():
            for each in piece.acks:
                if each.remaining is not None and not in_parts:
                    continue
                if piece.cumulative:
                    subscription.acknowledge_through(each.position, each.ack_set, save_now=False)
                elif each.remaining is None:
                    whole.append(each.position)
                else:
                    parts.append((each.position, each.ack_set))
        subscription.acknowledge(None, whole, parts, save_now=True)

    def _give_back(self, pieces: Pieces) -> None:
        """Redeliver the entries of an aborted transaction.

        Cumulative acknowledgements redeliver nothing, to keep the order.
        """
        self._release(pieces)
        subscription, is_acked = self._subscription, self._cursor.is_acked
        acks = [each for piece in pieces.values() if not piece.cumulative for each in piece.acks]
        positions = dict.fromkeys(each.position for each in acks if not is_acked(each.position))
        if positions and subscription is not None:
            subscription.give_back(list(positions))

    # life cycle

    def delete(self) -> None:
        """Delete the stored pieces of a deleted subscription. Call `attach` when the commit fails."""
        self._gone = True
        self.record.delete()

    def recover(self) -> None:
        """Recover the stored pieces. `attach` applies the committed ones."""
        self._pieces, committed = self.record.recover()
        for number, piece in self._pieces.items():
            self._hold(number, piece)
        for numbers in committed:
            self._committed.append({number: self._pieces[number] for number in numbers})
            for number in numbers:
                self._withdraw(number, self._pieces[number].txn)

    def attach(self, subscription: Acknowledging, topic: str) -> None:
        """Attach the subscription of a loaded topic, and apply the committed transactions."""
        self._subscription, self._topic, self._gone = subscription, topic, False
        committed, self._committed = self._committed, []
        for pieces in committed:
            self._apply(pieces)


class Overdue:
    """Find open transactions that the low watermark of their coordinator declares ended.

    The low watermark rises by about one with each end, so that the search covers few transactions.
    """

    def __init__(self) -> None:
        self._reached: dict[int, int] = {}  # the highest low watermark of each coordinator
        self._late: dict[int, set[TxnId]] = {}  # transactions of each coordinator that were opened below its watermark

    def opened(self, txn: TxnId) -> None:
        """Note a transaction that is opened here, and may have ended already."""
        if txn.least <= self._reached.get(txn.most, -1):
            self._late.setdefault(txn.most, set()).add(txn)

    def taken_back(self, most: int) -> None:
        """Forget the low watermark of a coordinator, whose commit failed. The next one searches all transactions."""
        self._reached.pop(most, None)
        self._late.pop(most, None)

    def take(self, most: int, low_watermark: int, among: Set[TxnId]) -> list[TxnId]:
        """Return the ended transactions of a coordinator that are in `among`, the open ones, each once and in order."""
        reached = self._reached.get(most, -1)
        self._reached[most] = max(reached, low_watermark)
        found = self._late.pop(most, set()) & among
        if low_watermark - reached <= len(among):
            found |= {TxnId(most, least) for least in range(reached + 1, low_watermark + 1)} & among
        else:
            found |= {each for each in among if each.most == most and reached < each.least <= low_watermark}
        return sorted(found)
