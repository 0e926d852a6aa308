"""Explain how a message left the backlog of a subscription: what moved the mark-delete position past it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pulsarium.broker.clock import instant_text
from pulsarium.broker.lab.why.answer import CAUGHT_UP, AskedMessage, Why
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.mark_moves import MarkMove, MovedBy
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.proto.message_id import bits_of

REASONS: Final[Mapping[MovedBy, str]] = {
    MovedBy.CUMULATIVE: "acknowledged-cumulatively",
    MovedBy.EXPIRED: "expired",
    MovedBy.SKIPPED: "skipped",
    MovedBy.EVICTED: "evicted",
    MovedBy.SEEK: "passed-by-seek",
    MovedBy.UNREADABLE: "skipped-unreadable",
}
ACKNOWLEDGED: Final = "acknowledged"
BEFORE_SUBSCRIPTION: Final = "before-subscription"
SUBSCRIBED: Final = "the start of the subscription"
PASSED: Final = "passed"  # acknowledged, expired or skipped: the broker does not remember which


def acknowledged(subscription: PersistentSubscription, position: Position, details: dict[str, Any]) -> Why:
    """Explain how an entry was acknowledged or passed, as far as the subscription remembers."""
    cursor, moves = subscription.cursor, subscription.mark_moves
    if not subscription.topic.ledger.is_valid(position):
        details["trimmed"] = True
    passed = moves.of(position)
    if passed is not None:
        details.update(_move_json(passed))
        text = f"{passed.by.value} went past it, through {passed.through}"
        if passed.ms:
            text += f", at {details['at']}"
        if passed.some_acked:
            text += "; unless a consumer had acknowledged it before"
        return Why(REASONS[passed.by], text, details)
    if position > cursor.mark_delete:
        return Why(ACKNOWLEDGED, "a consumer acknowledged it (or it was skipped by its id)", details)
    if position <= moves.start and moves.start >= cursor.start >= position:
        return Why(BEFORE_SUBSCRIPTION, f"the subscription begins after it, at {cursor.start}", details)
    if position <= moves.start:
        text = "the subscription passed it before the topic was loaded; the broker does not remember how"
        return Why(PASSED, text, details)
    if position <= moves.forgotten:
        return Why(PASSED, "the subscription passed it; the broker no longer remembers how", details)
    return Why(ACKNOWLEDGED, "a consumer acknowledged it (or it was skipped by its id)", details)


def _move_json(move: MarkMove) -> dict[str, Any]:
    known = {"by": move.by.value, "through": str(move.through)}
    return known | {"at": instant_text(move.ms)} if move.ms else known


def nothing_waits(subscription: PersistentSubscription) -> Why:
    """Explain an empty backlog: what moved the mark-delete position to the end of the topic."""
    last = subscription.topic.ledger.last_confirmed
    details: dict[str, Any] = {"backlog": 0}
    if last.entry_id < 0:
        return Why(CAUGHT_UP, "the topic has no messages", details)
    passing = [move for move in subscription.mark_moves.known if move.by is not MovedBy.CUMULATIVE]
    why = acknowledged(subscription, last, {})
    details |= {"last": str(last), "lastReason": why.reason, "moves": [_move_json(move) for move in passing]}
    if why.reason not in (ACKNOWLEDGED, REASONS[MovedBy.CUMULATIVE]):
        return Why(CAUGHT_UP, f"nothing waits; the last message is {last}: {why.text}", details)
    text = "everything was acknowledged"
    known_from = subscription.mark_moves.forgotten
    if known_from.entry_id >= 0 and known_from > subscription.cursor.start:
        text = f"everything after {known_from} was acknowledged; how the rest was passed is not remembered"
    if passing:
        latest = passing[-1]
        text += f", but for what {latest.by.value} went past, through {latest.through}, at {instant_text(latest.ms)}"
    return Why(CAUGHT_UP, text, details)


def passed_before(subscription: PersistentSubscription) -> tuple[list[dict[str, Any]], str]:
    """Return what went past messages without an acknowledgement of them, and the latest of it as a text or ""."""
    cursor, moves, ledger = subscription.cursor, subscription.mark_moves, subscription.topic.ledger
    found, text = list[dict[str, Any]](), ""
    if moves.start >= cursor.start:
        older = ledger.count_after(ledger.first_position(), cursor.start)
        if older:
            found.append({"by": SUBSCRIBED, "through": str(cursor.start), "entries": older})
            text = f"the subscription began after {older} older {'entry' if older == 1 else 'entries'}"
    for move in moves.known:
        count = ledger.count_after(move.after, move.through)
        if move.by is not MovedBy.CUMULATIVE and count:
            found.append({**_move_json(move), "entries": count})
            text = f"{move.by.value} went past {count} {'entry' if count == 1 else 'entries'}, through {move.through}"
            text += f", at {instant_text(move.ms)}" if move.ms else ""
    return found, text


def batch_index_acknowledged(subscription: PersistentSubscription, asked: AskedMessage) -> Why | None:
    """Explain that a message of a partly acknowledged batch is acknowledged. Return None when it is not."""
    words = subscription.cursor.batch_acks.words(asked.position)
    if not words or bits_of(words) >> asked.batch_index & 1:
        return None
    details = {"remaining": [index for index in range(len(words) * 64) if bits_of(words) >> index & 1][:100]}
    return Why("batch-index-acknowledged", "of its batch, this message is acknowledged", details)
