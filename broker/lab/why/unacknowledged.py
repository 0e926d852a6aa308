"""Explain the backlog of a subscription beyond its next message: loops, who holds messages, and what was passed."""

from __future__ import annotations

from typing import Any, Final

from pulsarium.broker.lab.why.answer import CAUGHT_UP, Why
from pulsarium.broker.lab.why.passed import passed_before
from pulsarium.broker.model.subscription.base import redelivery_loop
from pulsarium.broker.model.subscription.loops import LOOP, RedeliveryLoop
from pulsarium.broker.model.subscription.persistent import PersistentSubscription

IN_LOOP: Final = "redelivery-loop"
REMEDY: Final = "skip the message, or set a dead letter policy on the consumer"
SHOWN_HOLDERS: Final = 100


def with_backlog(subscription: PersistentSubscription, why: Why) -> Why:
    """Return the answer about a subscription with its redelivery loop first, and what is known of its backlog."""
    details: dict[str, Any] = {"backlog": subscription.cursor.backlog(), **why.details}
    reason, text = why.reason, why.text
    if why.reason != CAUGHT_UP and (holders := held_by(subscription)):
        details["heldBy"] = holders
        name, count = max(holders.items(), key=lambda pair: pair[1])
        others = f", and {len(holders) - 1} more consumers hold others" if len(holders) > 1 else ""
        text += f"; {name} holds {count} unacknowledged {'entry' if count == 1 else 'entries'}{others}"
    passed, latest = passed_before(subscription)
    if passed:
        details["passed"] = passed
        if why.reason != CAUGHT_UP or subscription.cursor.backlog():
            text += f"; {latest}"
    loop = redelivery_loop(subscription)
    if loop is None:
        return Why(reason, text, details)
    details["loop"] = loop_json(loop)
    return Why(IN_LOOP, f"{loop_text(loop)}; beside that: {text}", details | {"messageId": str(loop.position)})


def with_deliveries(why: Why) -> Why:
    """Return the answer about one message with the loop that the message is in."""
    redelivered = why.details.get("redeliveryCount", 0)
    if redelivered < LOOP:
        return why
    return Why(why.reason, f"{why.text}; it was delivered {redelivered + 1:,} times: {REMEDY}", why.details)


def held_by(subscription: PersistentSubscription) -> dict[str, int]:
    """Return how many unacknowledged entries each consumer has."""
    dispatcher = subscription.dispatcher
    if dispatcher is not None and dispatcher.active is not None:
        cursor = subscription.cursor
        held = max(0, cursor.ledger.count_after(cursor.mark_delete, cursor.ledger.previous(cursor.read_position)))
        return {dispatcher.active.name: held} if held else {}
    found = ((each.name, len(each.pending)) for each in subscription.consumers if each.pending)
    return dict(pair for pair, _ in zip(found, range(SHOWN_HOLDERS), strict=False))


def loop_text(loop: RedeliveryLoop) -> str:
    """Return a redelivery loop as a sentence, with the remedy."""
    whom = f" to {loop.consumer}, which returns it each time" if loop.consumer else " and is returned each time"
    return f"{loop.position} was delivered {loop.deliveries:,} times{whom}: {REMEDY}"


def loop_json(loop: RedeliveryLoop) -> dict[str, Any]:
    return {
        "messageId": str(loop.position),
        "deliveries": loop.deliveries,
        "consumer": loop.consumer,
        "remedy": REMEDY,
    }
