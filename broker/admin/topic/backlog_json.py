"""What stats say of backlogs: their quotas, and what expired."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.model.policy.policies import AGE, STORAGE
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.subscription.persistent import Expired, PersistentSubscription
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.upkeep import oldest_ms, quota_of
from pulsarium.broker.rates import Rates

Json = dict[str, Any]


def quotas(topic: Topic) -> Json:
    """The limits of a topic's backlog, and how old it is as far as that is known; -1: none."""
    size = seconds = age = 0
    if isinstance(topic, PersistentTopic):
        size, seconds = quota_of(topic, STORAGE).limit_size, quota_of(topic, AGE).limit_seconds
        oldest = oldest_ms(topic)
        age = -1 if oldest is None else (topic.now_ms() - oldest) // 1000
    return {
        "backlogQuotaLimitSize": size,
        "backlogQuotaLimitTime": seconds,
        "oldestBacklogMessageAgeSeconds": age,
    }


def expired(subscription: Subscription, rates: Rates) -> Json:
    """How many entries of a subscription expired, in the last interval and in all."""
    found = subscription.expired if isinstance(subscription, PersistentSubscription) else Expired()
    return {
        "msgRateExpired": rates.of(subscription).messages,
        "msgExpired": rates.events(subscription),
        "totalMsgExpired": found.total,
        "lastExpireTimestamp": found.tried_ms,
    }
