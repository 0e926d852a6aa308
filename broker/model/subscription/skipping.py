"""Moving a subscription on, without its consumers: what was passed over counts as acknowledged by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pulsarium.broker.model.cursor.skip import nth_position
from pulsarium.broker.model.dispatch.sharing import SharingDispatcher
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.passes import How

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.persistent import PersistentSubscription


def skip_through(
    subscription: PersistentSubscription, position: Position, ack_set: Sequence[int] = (), how: How = How.SKIPPED
) -> int:
    """Acknowledge everything up to an entry, or with an ack set up to a message in it; how many entries went.

    Consumers stay, and owe what was passed over no longer.
    """
    cursor = subscription.cursor
    before = cursor.backlog()
    subscription.acknowledge_through(position, ack_set, how)
    _forgive(subscription)
    subscription.acknowledged({}, save_now=True)
    subscription.dispatch_soon()
    return before - cursor.backlog()


def _forgive(subscription: PersistentSubscription) -> None:
    dispatcher, mark = subscription.dispatcher, subscription.cursor.mark_delete
    if dispatcher is not None:
        for consumer in list(dispatcher.consumers):
            passed = [position for position in consumer.pending if position <= mark]
            if passed:
                dispatcher.acknowledged(consumer, passed)


def skip(subscription: PersistentSubscription, count: int, *, with_acked: bool = False) -> int:
    """Pass over the next `count` unacknowledged entries; how many there were. `with_acked` as for `nth_position`."""
    position = nth_position(subscription.cursor, count, with_acked=with_acked)
    return skip_through(subscription, position) if position is not None else 0


def skip_all(subscription: PersistentSubscription) -> int:
    """Pass over everything that there is, delayed or not."""
    if isinstance(subscription.dispatcher, SharingDispatcher):
        subscription.dispatcher.delayed.clear()
    last = subscription.cursor.ledger.last_confirmed
    return skip_through(subscription, last) if last > subscription.cursor.mark_delete else 0
