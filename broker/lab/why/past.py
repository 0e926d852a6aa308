"""MovedBy a message was acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pulsarium.broker.clock import instant_text
from pulsarium.broker.lab.why.answer import Why
from pulsarium.broker.model.subscription.mark_moves import MovedBy
from pulsarium.proto.message_id import bits_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsarium.broker.lab.why.answer import MessageId
    from pulsarium.broker.model.ledger.position import Position
    from pulsarium.broker.model.subscription.persistent import PersistentSubscription

REASONS: Final[Mapping[MovedBy, str]] = {
    MovedBy.CUMULATIVE: "acknowledged-cumulatively",
    MovedBy.EXPIRED: "expired",
    MovedBy.SKIPPED: "skipped",
    MovedBy.EVICTED: "evicted",
    MovedBy.SEEK: "passed-by-seek",
}


def acknowledged(subscription: PersistentSubscription, position: Position, details: dict[str, Any]) -> Why:
    """Of an entry that is acknowledged: by whom, as far as that is known."""
    cursor, moves = subscription.cursor, subscription.mark_moves
    if not subscription.topic.ledger.is_valid(position):
        details["trimmed"] = True
    if position > cursor.mark_delete:
        return Why("acknowledged", "a consumer acknowledged it (or it was skipped by its id)", details)
    passed = moves.of(position)
    if passed is not None:
        details["by"] = passed.by.value
        details["through"] = str(passed.through)
        text = f"{passed.by.value} went past it, through {passed.through}"
        if passed.ms:
            details["at"] = instant_text(passed.ms)
            text += f", at {details['at']}"
        if passed.by is not MovedBy.SEEK:
            text += "; unless a consumer had acknowledged it before"
        return Why(REASONS[passed.by], text, details)
    if position <= moves.start and moves.start >= cursor.start >= position:
        return Why("before-subscription", f"the subscription begins after it, at {cursor.start}", details)
    if position <= moves.start:
        return Why("acknowledged", "it was acknowledged before the topic was loaded", details)
    if position <= moves.forgotten:
        return Why("acknowledged", "it was acknowledged, or passed over: too much happened since to tell", details)
    return Why("acknowledged", "a consumer acknowledged it (or it was skipped by its id)", details)


def batch_index_acknowledged(subscription: PersistentSubscription, asked: MessageId) -> Why | None:
    """Of a message in a batch that is partly acknowledged: whether it is of that part."""
    words = subscription.cursor.batch_acks.words(asked.position)
    if not words or bits_of(words) >> asked.batch_index & 1:
        return None
    details = {"remaining": [index for index in range(len(words) * 64) if bits_of(words) >> index & 1][:100]}
    return Why("batch-index-acknowledged", "of its batch, this message is acknowledged", details)
