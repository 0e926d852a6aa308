"""Acknowledgements in transactions: they count when the transaction is committed, and not before.

Until then nobody is given what is acknowledged, and no other transaction may acknowledge it; to do so without a
transaction is allowed. Each ACK is one piece of metadata; a commit is kept first, then applied to the cursor, whose
next save lets go of both. So what a failed commit leaves in the store is what is in memory, at every step.
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
    """What Pulsar tells of the pending acknowledgements of a subscription."""

    began_ms: int  # when they were first used, or recovered; 0: there never were transactions
    ongoing: int  # transactions that acknowledged entries one by one
    low_watermarks: Mapping[int, int]  # by coordinator

    @property
    def state(self) -> str:
        return "Ready" if self.began_ms else "None"


class Acknowledging(Protocol):
    """The subscription of a cursor, once its topic is loaded."""

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
        """Deliver these again at once: a transaction that had acknowledged them was aborted."""
        ...


class PendingAcks:
    """What open transactions acknowledged of one subscription. It outlives the topic's being unloaded, as the cursor
    does that it belongs to."""

    def __init__(self, cursor: ManagedCursor, stores: Stores) -> None:
        self.record = PendingRecord(cursor, stores)
        self.low_watermarks: dict[int, int] = {}  # by coordinator
        self._cursor = cursor
        self._stores = stores
        self._subscription: Acknowledging | None = None
        self._topic = ""  # its name, once there is a subscription
        self._pieces: Pieces = {}  # all of those below, by number
        self._open: dict[TxnId, Pieces] = {}
        self._overdue = Overdue()
        self._holders = Holders()  # also while a transaction ends
        self._through: Pieces = {}  # cumulative ones: of one transaction, each beyond the one before
        self._committed: list[Pieces] = []  # kept as such, to be applied once there is a subscription
        self._gone = False

    def __bool__(self) -> bool:
        """Whether anything is acknowledged."""
        return bool(self._pieces)

    # what is acknowledged

    def acknowledge(self, txn: TxnId, acks: Sequence[Acked]) -> None:
        """Acknowledge entries in a transaction: all of them, or none. Raises TransactionConflictError."""
        self.record.begin_use()
        for each in acks:
            self._check(txn, each)
        if acks:
            self._add(Piece(txn, acks))

    def acknowledge_through(self, txn: TxnId, ack: Acked) -> None:
        """The same for everything up to an entry, or to a message in it."""
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
        """As Pulsar does: of entries that are acknowledged one by one, those that are cumulatively do not count."""
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
        """Persist point: the ACK. Where it is not kept, nothing was acknowledged."""
        if error is not None:
            self._withdraw(number, piece.txn)
            self._give_back({number: piece})

    def _withdraw(self, number: int, txn: TxnId) -> None:
        """This one is not of the open transaction."""
        pieces = self._open.get(txn, {})
        pieces.pop(number, None)
        if not pieces:
            self._open.pop(txn, None)

    def _release(self, pieces: Pieces) -> None:
        """These hold nothing any more."""
        for number, piece in pieces.items():
            self._pieces.pop(number, None)
            self._through.pop(number, None)
            for each in () if piece.cumulative else piece.acks:
                self._holders.remove(number, each.position)

    # what others see of it

    def left_of(self, position: Position, left: int | None) -> int | None:
        """Of the bits that remain of an entry (None: all of it), those that no transaction acknowledged."""
        pending = self._holders.left_of(position)
        if pending is None or left is None:
            return left if pending is None else pending
        return left & pending

    def forget(self, positions: Iterable[Position]) -> None:
        """These were acknowledged without a transaction."""
        for position in positions:
            self._holders.forget(position)

    def holders_of(self, position: Position) -> list[tuple[TxnId, Acked]]:
        """The transactions that acknowledged an entry, or parts of it, and which; a transaction may come twice."""
        return [(self._pieces[number].txn, acked) for number, acked in self._holders.of(position).items()]

    def cumulative_of(self, txn: TxnId) -> Acked | None:
        """Up to where a transaction acknowledged everything."""
        last = next(reversed(self._through.values()), None)
        return last.acks[0] if last is not None and last.txn == txn else None

    def acknowledged_by(self, position: Position, index: int = -1) -> list[TxnId]:
        """The transactions that acknowledged all of an entry together, or one message of it."""
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
        """The figures of it all."""
        individual = [pieces for pieces in self._open.values() if not all(each.cumulative for each in pieces.values())]
        return PendingAckStats(self.record.began_ms, len(individual), dict(self.low_watermarks))

    # the end of a transaction

    def end(self, txn: TxnId, *, commit: bool, low_watermark: int) -> None:
        """As Participant has it."""
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
        for each in overdue:  # acknowledged when it was over, or never was
            pieces = self._open.pop(each)
            self.record.let_go(pieces)
            self._stores.turn.after_commit(partial(self._ended, pieces, False))

    def _of(self, txn: TxnId) -> Pieces:
        """What a transaction acknowledged, which is open from now on."""
        found = self._open.get(txn)
        if found is None:
            found = self._open[txn] = {}
            self._overdue.opened(txn)
        return found

    def _ended(self, pieces: Pieces, commit: bool, error: Exception | None) -> None:
        """Persist point: the end. Where it is not kept the transaction is open again."""
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
        """Acknowledge what a committed transaction did."""
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
        """What these acknowledged is delivered again; not where it was cumulatively, for the order must hold."""
        self._release(pieces)
        subscription, is_acked = self._subscription, self._cursor.is_acked
        acks = [each for piece in pieces.values() if not piece.cumulative for each in piece.acks]
        positions = dict.fromkeys(each.position for each in acks if not is_acked(each.position))
        if positions and subscription is not None:
            subscription.give_back(list(positions))

    # life

    def delete(self) -> None:
        """The subscription goes; `attach` if that is not kept."""
        self._gone = True
        self.record.delete()

    def recover(self) -> None:
        """Take what the store has. What was committed is applied with `attach`."""
        self._pieces, committed = self.record.recover()
        for number, piece in self._pieces.items():
            self._hold(number, piece)
        for numbers in committed:
            self._committed.append({number: self._pieces[number] for number in numbers})
            for number in numbers:
                self._withdraw(number, self._pieces[number].txn)

    def attach(self, subscription: Acknowledging, topic: str) -> None:
        """The topic is loaded."""
        self._subscription, self._topic, self._gone = subscription, topic, False
        committed, self._committed = self._committed, []
        for pieces in committed:
            self._apply(pieces)


class Overdue:
    """Finds open transactions that are over, as their coordinators' low watermarks say.

    It does not look at all that are open: the watermark rises by about one with each end.
    """

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
