"""/admin/v2/persistent: whether a subscription should be replicated. The wish is kept; nothing is replicated."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.broker.admin.policies.values import BOOL
from pulsarium.broker.admin.topic.topics import each
from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import of_topic, route
from pulsarium.broker.http.reply import Reply, done, json_reply
from pulsarium.broker.model.subscription.persistent import PersistentSubscription

STATUS = "/subscription/{subscription}/replicatedSubscriptionStatus"


@route("GET", *of_topic(STATUS), needs=topic_operation("GET_REPLICATED_SUBSCRIPTION_STATUS"))
def get_replicated(call: Call) -> Reply:
    """For the topic, or each partition of it, by name."""
    found = _subscriptions(call, "Cannot get replicated subscriptions on non-persistent topics")
    return json_reply({str(subscription.topic.name): subscription.replicated for subscription in found})


@route("POST", *of_topic(STATUS), needs=topic_operation("SET_REPLICATED_SUBSCRIPTION_STATUS"))
def set_replicated(call: Call) -> Reply:
    """Wish it, or not."""
    replicated = BOOL.read(call)
    for subscription in _subscriptions(call, "Cannot enable/disable replicated subscriptions on non-persistent topics"):
        subscription.set_replicated(replicated)
    return done()


def _subscriptions(call: Call, only_persistent: str) -> Iterator[PersistentSubscription]:
    if call.domain != "persistent":
        raise AdminError(405, only_persistent)
    name = call.encoded_parameter("subscription")
    for topic in each(call):
        subscription = topic.subscriptions.get(name)
        if not isinstance(subscription, PersistentSubscription):
            raise AdminError(404, f"Subscription {name} not found for topic {topic.name}")
        yield subscription
