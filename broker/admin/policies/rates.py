"""/admin/v2: how fast messages may come and go, of namespaces and of topics. Those of replicators are only kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pulsarium.broker.admin.policies.policy import POLICIES_MISSING, Json, NamespacePolicy, TopicPolicy, with_value
from pulsarium.broker.admin.policies.values import BOOL, DATA, INT, LONG, record
from pulsarium.broker.config.keys import Config
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.reply import done

RATE = "RATE"
DISPATCH_RATE = record(
    f"{DATA}.impl.DispatchRateImpl",
    {
        "dispatchThrottlingRateInMsg": INT,
        "dispatchThrottlingRateInByte": LONG,
        "relativeToPublishRate": BOOL,
        "ratePeriodInSecond": INT,
    },
)
PUBLISH_RATE = record(
    f"{DATA}.PublishRate",
    {"publishThrottlingRateInMsg": INT, "publishThrottlingRateInByte": LONG},
    {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": -1},
)


def _rate(messages: int, size: int) -> Json:
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": size,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 1,
    }


def rate_of_topics(config: Config) -> Json:
    """The broker's own for each topic."""
    return _rate(config.dispatchThrottlingRatePerTopicInMsg, config.dispatchThrottlingRatePerTopicInByte)


def rate_of_subscriptions(config: Config) -> Json:
    """The broker's own for each subscription."""
    return _rate(config.dispatchThrottlingRatePerSubscriptionInMsg, config.dispatchThrottlingRatePerSubscriptionInByte)


def unthrottled(config: Config) -> Json:
    """The broker's own for each replicator: none."""
    return _rate(0, 0)


class TopicDispatchRate(NamespacePolicy):
    """Pulsar keeps it twice: clusterDispatchRate is its older name."""

    __slots__ = ()

    def changed(self, call: Call, kept: Json, value: Any) -> dict[str, Any]:
        changed = super().changed(call, kept, value)
        return with_value(changed, "clusterDispatchRate", changed.get(self.name))


def _dispatch(name: str, word: str, about: str, right: str = RATE, **more: Any) -> NamespacePolicy:
    kind = TopicDispatchRate if name == "topicDispatchRate" else NamespacePolicy
    return kind(name, word, right, about, DISPATCH_RATE, per_cluster=True, **more)


def _dispatch_of_topic(
    name: str, word: str, about: str, default: Callable[[Config], Json], right: str = RATE, **more: Any
) -> TopicPolicy:
    return TopicPolicy(name, word, right, about, DISPATCH_RATE, per_cluster=True, default=default, **more)


TOPIC = "How fast a topic's messages go out"
SUBSCRIPTION = "How fast they go out to one subscription"
REPLICATOR = "How fast they go out to another cluster"
PUBLISH = "How fast messages may come in to a topic"

NAMESPACE_RATES = (
    NamespacePolicy("publishMaxMessageRate", "publishRate", RATE, PUBLISH, PUBLISH_RATE, per_cluster=True),
    _dispatch("topicDispatchRate", "dispatchRate", TOPIC),
    _dispatch("subscriptionDispatchRate", "subscriptionDispatchRate", SUBSCRIPTION),
    _dispatch(
        "replicatorDispatchRate",
        "replicatorDispatchRate",
        REPLICATOR,
        "REPLICATION_RATE",
        missing=(404, ""),
        missing_for_get=POLICIES_MISSING,
    ),
)
TOPIC_RATES = (
    TopicPolicy(
        "publishMaxMessageRate",
        "publishRate",
        RATE,
        PUBLISH,
        PUBLISH_RATE,
        unset=done(),
        per_cluster=True,
        keeps_at_null=True,
    ),
    _dispatch_of_topic("topicDispatchRate", "dispatchRate", TOPIC, rate_of_topics, keeps_at_null=True),
    _dispatch_of_topic("subscriptionDispatchRate", "subscriptionDispatchRate", SUBSCRIPTION, rate_of_subscriptions),
    _dispatch_of_topic("replicatorDispatchRate", "replicatorDispatchRate", REPLICATOR, unthrottled, "REPLICATION_RATE"),
)
