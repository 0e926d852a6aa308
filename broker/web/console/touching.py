"""Find out which entries an act on a subscription touches, without doing the act."""

from __future__ import annotations

from dataclasses import dataclass

from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.skip import nth_position
from pulsarium.broker.model.topic.backlog import last_older_than, may_expire


@dataclass(frozen=True, slots=True)
class Touched:
    """The entries from `first` through `last` that an act touches, and their number without acknowledged ones.

    `again`: they were acknowledged, and are delivered again. `restored` entries come back behind them. `undo` is the
    position to which a seek goes back. An act that is `refused` touches nothing.
    """

    first: Position | None = None
    last: Position | None = None
    count: int = 0
    again: bool = False
    restored: int = 0
    undo: Position | None = None
    refused: str = ""


def skipped(subscription: PersistentSubscription, count: int) -> Touched:
    """Return the next `count` entries of the backlog."""
    last = nth_position(subscription.cursor, count)
    return Touched() if last is None else _through(subscription, last)


def skipped_alone(subscription: PersistentSubscription, position: Position, batch_index: int) -> Touched:
    """Return one entry, or the one of a message in a batch."""
    cursor = subscription.cursor
    if subscription.dispatcher is not None and not subscription.shares_messages:
        return Touched(refused="only messages of Shared and Key_Shared subscriptions can be skipped by their ids")
    if not cursor.ledger.is_valid(position):
        return Touched(refused=f"there is no message {position}")
    left = cursor.left_of(position)
    if cursor.is_acked(position) or (batch_index >= 0 and left is not None and not left >> batch_index & 1):
        return Touched(refused=f"{position} is acknowledged already")
    return Touched(position, position, 1)


def cleared(subscription: PersistentSubscription) -> Touched:
    """Return the whole backlog."""
    return _through(subscription, subscription.topic.ledger.last_confirmed)


def expired(subscription: PersistentSubscription, seconds: int) -> Touched:
    """Return the entries of the backlog that are older than some seconds."""
    if not may_expire(subscription, seconds):
        return Touched(refused="nothing expires: the backlog is empty, or connected consumers have almost caught up")
    last = last_older_than(subscription, seconds)
    return Touched() if last is None else _through(subscription, last)


def expired_through(subscription: PersistentSubscription, position: Position) -> Touched:
    """Return the entries of the backlog up to a message."""
    ledger = subscription.topic.ledger
    if position > ledger.last_confirmed:
        return Touched(refused=f"{position} is beyond the last message, {ledger.last_confirmed}")
    last = position if ledger.is_valid(position) else ledger.previous(ledger.clamp(position))
    return _through(subscription, last)


def sought(subscription: PersistentSubscription, target: Position) -> Touched:
    """Return what a seek to a message passes, or delivers again."""
    cursor, ledger = subscription.cursor, subscription.topic.ledger
    if subscription.resetting:
        return Touched(refused="the subscription is being reset already")
    if target == EARLIEST:
        read = ledger.next(ledger.first_position())
    elif target.ledger_id == LATEST.ledger_id:
        read = ledger.next(ledger.last_confirmed)
    else:
        read = ledger.clamp(target)
    mark, undo = ledger.previous(read), ledger.next(cursor.mark_delete)
    restored = len(cursor.individual_acks) - _acked_through(cursor, mark)
    if mark > cursor.mark_delete:
        found = _through(subscription, mark)
        return Touched(found.first, found.last, found.count, restored=restored, undo=undo)
    count = ledger.count_after(mark, cursor.mark_delete)
    last = cursor.mark_delete if count else None
    return Touched(read if count else None, last, count, again=True, restored=restored, undo=undo)


def _through(subscription: PersistentSubscription, last: Position) -> Touched:
    """Return the entries of the backlog through `last`."""
    cursor = subscription.cursor
    first = nth_position(cursor, 1)
    if first is None or last < first:
        return Touched()
    count = cursor.ledger.count_after(cursor.mark_delete, last) - _acked_through(cursor, last)
    return Touched(first, nth_position(cursor, count), count)


def _acked_through(cursor: ManagedCursor, last: Position) -> int:
    """Return how many entries are individually acknowledged, up to and including `last`."""
    found = 0
    for ledger_id in cursor.ledger.ledgers:
        acked = cursor.individual_acks.of(ledger_id)
        if acked is not None and ledger_id <= last.ledger_id:
            here = ledger_id == last.ledger_id
            found += acked.rank(max(0, last.entry_id)) if here and last.entry_id >= 0 else 0 if here else len(acked)
    return found
