"""Pending acknowledgements: acknowledgements in open transactions, which take effect with the commit.

    open --ACK in the transaction--> pending --commit--> applied to the cursor
                                        |
                                        +-----abort----> given back, and redelivered as whole entries

Until the transaction ends, the broker does not deliver the acknowledged messages. Another transaction cannot
acknowledge them (TransactionConflict), but an ACK without a transaction can. Individual acknowledgements do not
conflict with pending cumulative ones, as in Pulsar, and only one transaction at a time may acknowledge cumulatively.

The store has one piece of metadata for each ACK, and several for an ACK with very many ids. A commit is stored first
and then applied to the cursor, whose next save deletes both. So memory and store agree after each failed commit, and a
crash between the two applies the commit again, which changes nothing.

A transaction that ended long ago may have left pieces, when its coordinator ended it while the topic was absent. The
low watermark, below which all transactions of a coordinator have ended, clears them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Protocol

from pulsarium.broker.model.cursor.effect import EndEffect
from pulsarium.broker.model.cursor.pending_record import (
    Holders,
    PendingEntry,
    PendingPiece,
    PendingRecord,
    Pieces,
    left_by,
)
from pulsarium.broker.model.cursor.records import CursorState
from pulsarium.broker.model.errors import TransactionConflictError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import LAST_ID, PositionSet
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.proto.message_id import TxnId

ACKS_A_STEP = 1000  # acknowledgements that are added, applied or given back at once


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
        """Redeliver these entries at once, because the transaction that acknowledged them was aborted.

        Without `shares_messages`, all entries that are not acknowledged are redelivered.
        """
        ...


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


class PendingAcks:
    """The acknowledgements of open transactions on one subscription. They survive an unload, as the cursor does."""

    def __init__(self, name: str, cursor: CursorState, record: PendingRecord, stores: Stores) -> None:
        self.record = record
        self.low_watermarks: dict[int, int] = {}  # by coordinator
        self._name = name  # of the subscription
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

    def _is_acked(self, position: Position) -> bool:
        return position <= self._cursor.mark_delete or position in self._cursor.individual_acks

    # acknowledging

    def acknowledge(self, txn: TxnId, acks: Sequence[PendingEntry]) -> None:
        """Acknowledge all these entries in a transaction, or none. Raise `TransactionConflictError` on a conflict."""
        self.record.begin_use()
        for each in acks:
            self._check(txn, each)
        if acks:
            self._add(PendingPiece(txn, acks))

    def acknowledge_in_steps(
        self, txn: TxnId, acks: Iterable[PendingEntry], made_some: Callable[[Sequence[PendingEntry]], None]
    ) -> Generator[None, None, None]:
        """Acknowledge very many entries as `acknowledge` does, all of them in the last step, or none.

        Others see these acknowledgements before that. A conflict is found before any is made, unless another client
        acknowledges the same entries meanwhile. `made_some` is called with those that are made. They are given back
        when the steps are closed before the last.
        """
        self.record.begin_use()
        merged: dict[Position, PendingEntry] = {}  # an entry that is named again does not conflict with itself
        left = iter(acks)
        while some := list(islice(left, ACKS_A_STEP)):
            for each in some:
                self._check(txn, each)
                before = merged.get(each.position)
                merged[each.position] = each if before is None else before.joined(each)
            yield
        made: Pieces = {}
        packed: dict[int, bytes] = {}
        all_made = False
        coming = iter(merged.values())
        try:
            while some := list(islice(coming, ACKS_A_STEP)):
                for each in some:
                    self._check(txn, each)
                number, piece = self.record.number(), PendingPiece(txn, some)
                made[number], packed[number] = piece, self.record.packed(piece)
                self._hold(number, piece)
                made_some(some)
                yield
            all_made = True
        finally:
            if not all_made and made:
                turn = self._stores.turn
                turn.later(lambda: turn.in_slices(self._give_back(made)))
        for number, piece in made.items():
            self.record.add(number, packed[number])
            self._of(txn)[number] = piece
        self._stores.turn.after_commit(partial(self._kept, made))

    def acknowledge_through(self, txn: TxnId, ack: PendingEntry) -> None:
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
        self._add(PendingPiece(txn, (ack,), cumulative=True))

    def _check(self, txn: TxnId, ack: PendingEntry) -> None:
        """Raise `TransactionConflictError` for an entry that is acknowledged already.

        As in Pulsar, individual acknowledgements do not conflict with pending cumulative ones.
        """
        cursor, position = self._cursor, ack.position
        done = cursor.batch_acks.bits(position)
        if self._is_acked(position) or (ack.remaining is not None and done is not None and ack.overlaps(done)):
            raise TransactionConflictError(f"{self._who(txn)} try to ack message:{ack.text} already acked before.")
        left = self._holders.left_of(position)
        if ack.remaining is None:
            if left is not None or (self._shares_messages and done is not None):
                raise TransactionConflictError(f"{self._who(txn)} try to ack message:{ack.text} in pending ack status.")
        elif left is not None and ack.overlaps(left):
            raise TransactionConflictError(
                f"{self._who(txn)} try to ack batch message:{ack.text} in pending ack status."
            )

    def _who(self, txn: TxnId) -> str:
        return f"[{self._topic}][{self._name}] Transaction:{txn}"

    def _add(self, piece: PendingPiece) -> None:
        number = self.record.number()
        self.record.add(number, self.record.packed(piece))
        self._hold(number, piece)
        self._of(piece.txn)[number] = piece
        self._stores.turn.after_commit(partial(self._kept, {number: piece}))

    def _hold(self, number: int, piece: PendingPiece) -> None:
        self._pieces[number] = piece
        if piece.cumulative:
            self._through[number] = piece
            return
        for each in piece.acks:
            self._holders.add(number, each)

    def _kept(self, pieces: Pieces, error: Exception | None) -> None:
        """Persist point: the ACK. Withdraw the acknowledgements when the commit fails."""
        if error is not None:
            for number, piece in pieces.items():
                self._withdraw(number, piece.txn)
            self._stores.turn.in_slices(self._give_back(pieces))

    def _withdraw(self, number: int, txn: TxnId) -> None:
        """Remove a piece from its open transaction."""
        pieces = self._open.get(txn, {})
        pieces.pop(number, None)
        if not pieces:
            self._open.pop(txn, None)

    def _remove(self, pieces: Pieces) -> None:
        """Remove these pieces, which hold no entry any more."""
        for number in pieces:
            self._pieces.pop(number, None)
            self._through.pop(number, None)

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

    def holders_of(self, position: Position) -> list[tuple[TxnId, PendingEntry]]:
        """Return the transactions that acknowledged an entry or parts of it, with these parts.

        A transaction may repeat.
        """
        return [(self._pieces[number].txn, acked) for number, acked in self._holders.of(position).items()]

    def cumulative_of(self, txn: TxnId) -> PendingEntry | None:
        """Return the position up to which a transaction acknowledged everything, or None."""
        last = next(reversed(self._through.values()), None)
        return last.acks[0] if last is not None and last.txn == txn else None

    def acknowledged_by(self, position: Position, index: int = -1) -> list[TxnId]:
        """Return the transactions that acknowledged an entry together, or the message at `index` of its batch."""
        found = self.holders_of(position)
        for piece in self._through.values():
            reached = piece.acks[0]
            if reached.position >= position:
                beyond = reached if reached.position == position else PendingEntry(position)
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
        last = next(reversed(self._through.values()), None)  # only one transaction acknowledges cumulatively
        pieces = {} if last is None else self._open.get(last.txn, {})
        others = bool(pieces) and all(each.cumulative for each in pieces.values())
        return PendingAckStats(self.record.began_ms, len(self._open) - others, dict(self.low_watermarks))

    # the end of a transaction

    def end(self, txn: TxnId, *, commit: bool, low_watermark: int) -> EndEffect | None:
        """End a transaction, as `Participant.end` does."""
        if self._gone:
            return None
        effect = None
        self.record.begin_use()
        if txn in self._open:
            self.low_watermarks[txn.most] = max(low_watermark, self.low_watermarks.get(txn.most, low_watermark))
            pieces = self._open.pop(txn)
            if commit:
                self.record.commit(pieces)
            else:
                self.record.let_go(pieces)
            effect = EndEffect()
            self._stores.turn.after_commit(partial(self._ended, pieces, commit, effect))
        overdue = self._overdue.take(txn.most, low_watermark, self._open.keys())
        self._stores.turn.in_slices(self._abort(overdue))
        return effect

    def _abort(self, overdue: Iterable[TxnId]) -> Iterator[None]:
        """Abort what was acknowledged after the end of its transaction, or in one that never existed."""
        for txn in overdue:
            pieces = None if self._gone else self._open.pop(txn, None)
            if pieces is not None:
                self.record.let_go(pieces)
                self._stores.turn.after_commit(partial(self._ended, pieces, False, EndEffect()))
            yield

    def _of(self, txn: TxnId) -> Pieces:
        """Return the pieces of a transaction, and open the transaction when it is new."""
        found = self._open.get(txn)
        if found is None:
            found = self._open[txn] = {}
            self._overdue.opened(txn)
        return found

    def _ended(self, pieces: Pieces, commit: bool, effect: EndEffect, error: Exception | None) -> None:
        """Persist point: the end. Open the transaction again when the commit fails."""
        if error is not None:
            for txn in {piece.txn for piece in pieces.values()}:
                self._overdue.taken_back(txn.most)
            for number in sorted(pieces.keys() & self._pieces.keys()):
                piece = pieces[number]
                self._of(piece.txn)[number] = piece
        elif commit:
            self._apply(pieces, effect)
        else:
            self._stores.turn.in_slices(self._give_back(pieces, effect))

    def _apply(self, pieces: Pieces, effect: EndEffect) -> None:
        """Acknowledge the entries of a committed transaction, or note them until the topic is loaded."""
        if self._subscription is None or self._gone:
            self._committed.append(pieces)
            effect.complete()
        else:
            self._stores.turn.in_slices(self._acknowledge(pieces, effect))

    def _acknowledge(self, pieces: Pieces, effect: EndEffect) -> Iterator[None]:
        """Acknowledge the entries of a committed transaction. The cursor that is saved last has all of them."""
        left = _acks_of(pieces)
        following = list(islice(left, ACKS_A_STEP))
        while following and not self._gone:
            some, following = following, list(islice(left, ACKS_A_STEP))
            if not following:
                self.record.applied(pieces)
            self._acknowledge_some(some, save_now=not following)
            if following:
                yield
        self._remove(pieces)
        effect.complete()

    def _acknowledge_some(self, acks: Iterable[tuple[int, PendingPiece, PendingEntry]], *, save_now: bool) -> None:
        subscription = self._subscription
        assert subscription is not None
        in_parts = self._stores.config.acknowledgmentAtBatchIndexLevelEnabled
        whole: list[Position] = []
        parts: list[tuple[Position, Sequence[int]]] = []
        for number, piece, each in acks:
            if not piece.cumulative:
                self._holders.remove((number,), each.position)
            if each.remaining is not None and not in_parts:
                continue
            if piece.cumulative:
                subscription.acknowledge_through(each.position, each.ack_set, save_now=False)
            elif each.remaining is None:
                whole.append(each.position)
            else:
                parts.append((each.position, each.ack_set))
        subscription.acknowledge(None, whole, parts, save_now=save_now)

    def _give_back(self, pieces: Pieces, effect: EndEffect | None = None) -> Iterator[None]:
        """Redeliver the entries of an aborted transaction.

        Cumulative acknowledgements redeliver nothing, to keep the order. Individual ones go back in the order of the
        entries.
        """
        again, is_acked = PositionSet(), self._is_acked
        acks = _acks_of(pieces)
        while some := list(islice(acks, ACKS_A_STEP)):
            positions = [each.position for _, piece, each in some if not piece.cumulative]
            for position in positions:
                if not 0 <= position.entry_id <= LAST_ID:  # no entry has such an id
                    self._holders.remove(pieces, position)
            again.update(position for position in positions if 0 <= position.entry_id <= LAST_ID)
            yield
        coming = iter(again)
        came = False
        while some_again := list(islice(coming, ACKS_A_STEP)):
            for position in some_again:
                self._holders.remove(pieces, position)
            back = [position for position in some_again if not is_acked(position)]
            came = came or bool(back)
            if back and self._shares_messages:
                self._redeliver(back)
            yield
        self._remove(pieces)
        if came and not self._shares_messages:
            self._redeliver([])
        if effect is not None:
            effect.complete()

    @property
    def _shares_messages(self) -> bool:
        return self._subscription is not None and self._subscription.shares_messages

    def _redeliver(self, positions: Sequence[Position]) -> None:
        if self._subscription is not None:
            self._subscription.give_back(positions)

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
            self._of(piece.txn)[number] = piece
        for numbers in committed:
            self._committed.append({number: self._pieces[number] for number in numbers})
            for number in numbers:
                self._withdraw(number, self._pieces[number].txn)

    def attach(self, subscription: Acknowledging, topic: str) -> None:
        """Attach the subscription of a loaded topic, and apply the committed transactions."""
        self._subscription, self._topic, self._gone = subscription, topic, False
        committed, self._committed = self._committed, []
        for pieces in committed:
            self._apply(pieces, EndEffect())


def _acks_of(pieces: Pieces) -> Iterator[tuple[int, PendingPiece, PendingEntry]]:
    return ((number, piece, each) for number, piece in pieces.items() for each in piece.acks)
