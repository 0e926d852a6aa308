"""Which dispatcher a subscription has."""

from __future__ import annotations

from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher
from pulsarium.broker.model.dispatch.recently_joined import RecentlyJoinedDispatcher
from pulsarium.broker.model.dispatch.selector import selector_for
from pulsarium.broker.model.dispatch.shared import SharedDispatcher
from pulsarium.broker.model.dispatch.single_active import SingleActiveDispatcher
from pulsarium.broker.model.dispatch.stalling import StallingSharedDispatcher
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.subscription.consumer import ConsumerOptions
from pulsarium.broker.model.subscription.dispatcher import Dispatcher
from pulsarium.proto.generated import PulsarApi_pb2 as pb


def dispatcher_for(subscription: Subscription, options: ConsumerOptions) -> Dispatcher:
    """Return a dispatcher of the type that the first consumer asks for."""
    stores = subscription.topic.stores
    if options.type == pb.CommandSubscribe.Shared:
        kind = StallingSharedDispatcher if stores.profile.chunks_stall else SharedDispatcher
        return kind(subscription)
    if options.type == pb.CommandSubscribe.Key_Shared:
        persistent = subscription.cursor is not None
        classic = persistent and stores.config.subscriptionKeySharedUseClassicPersistentImplementation
        selector = selector_for(options.key_shared, stores.config, classic=classic)
        sharing = RecentlyJoinedDispatcher if classic else KeySharedDispatcher
        return sharing(subscription, selector, options.key_shared)
    return SingleActiveDispatcher(subscription, options.type)
