"""What stats say of dispatch: limits that were reached, what waits, and who has which keys."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher
from pulsarium.broker.model.dispatch.recently_joined import RecentlyJoinedDispatcher
from pulsarium.broker.model.dispatch.sharing import SharingDispatcher
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.subscription.consumer import Consumer
from pulsarium.broker.model.subscription.dispatcher import Dispatcher
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.proto.generated import PulsarApi_pb2 as pb

Json = dict[str, Any]

NO_DRAINING = {"drainingHashesCount": 0, "drainingHashesClearedTotal": 0, "drainingHashesUnackedMessages": 0}


def waiting(subscription: Subscription) -> Json:
    """What a subscription holds back."""
    dispatcher = subscription.dispatcher
    sharing = dispatcher if isinstance(dispatcher, SharingDispatcher) else None
    return {
        "blockedSubscriptionOnUnackedMsgs": sharing is not None and sharing.blocked,
        "msgDelayed": _delayed(subscription, sharing) if sharing is not None else 0,
        "msgInReplay": sharing.waiting_count if sharing is not None else 0,
    }


def _delayed(subscription: Subscription, sharing: SharingDispatcher) -> int:
    """Return the number of delayed messages; by the profile also those that were acknowledged meanwhile."""
    as_released = subscription.topic.stores.profile.acknowledged_stay_delayed
    if as_released or not isinstance(subscription, PersistentSubscription):
        return len(sharing.delayed)
    return sharing.delayed.count_unacknowledged(subscription.cursor)


def recently_joined(dispatcher: Dispatcher | None) -> Json:
    """Where reading stood when consumers joined that still wait for what was read before."""
    if not isinstance(dispatcher, RecentlyJoinedDispatcher):
        return {}
    return {consumer.name: str(position) for consumer, position in dispatcher.joined.items()}


def key_sharing(dispatcher: Dispatcher | None) -> Json:
    """How a subscription divides keys."""
    if not isinstance(dispatcher, KeySharedDispatcher):
        return {"allowOutOfOrderDelivery": False}
    mode = pb.KeySharedMode.Name(dispatcher.mode)
    return {"allowOutOfOrderDelivery": dispatcher.out_of_order, "keySharedMode": mode}


def draining(dispatcher: Dispatcher | None) -> Json:
    """The hashes that change hands, of all consumers."""
    if not isinstance(dispatcher, KeySharedDispatcher):
        return NO_DRAINING
    each = [draining_of(dispatcher, consumer) for consumer in dispatcher.consumers]
    return {field: sum(one[field] for one in each) for field in NO_DRAINING}


def draining_of(dispatcher: Dispatcher | None, consumer: Consumer) -> Json:
    """The hashes that a consumer has to let go of."""
    if not isinstance(dispatcher, KeySharedDispatcher) or not dispatcher.drains:
        return NO_DRAINING
    hashes = dispatcher.owed.draining_of(consumer)
    return {
        "drainingHashesCount": len(hashes),
        "drainingHashesClearedTotal": dispatcher.owed.drained.get(consumer, 0),
        "drainingHashesUnackedMessages": sum(owed for owed, _ in hashes.values()),
        "drainingHashes": [
            {"hash": key_hash, "unackMsgs": owed, "blockedAttempts": attempts}
            for key_hash, (owed, attempts) in sorted(hashes.items())
        ],
    }


def key_ranges(dispatcher: Dispatcher | None) -> dict[Consumer, Json]:
    """Which hashes belong to whom."""
    if not isinstance(dispatcher, KeySharedDispatcher):
        return {}
    ranges = dispatcher.selector.ranges()
    return {each: {"keyHashRangeArrays": [list(one) for one in ranges.get(each, ())]} for each in dispatcher.consumers}
