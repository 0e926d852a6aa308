"""What holds for a topic, as the JSON in which the policies are set."""

from __future__ import annotations

from pulsarium.broker.admin.policies.policy import Json
from pulsarium.broker.model.policy.policies import Policies


def retention_of(policies: Policies) -> Json:
    retention = policies.retention
    return {"retentionTimeInMinutes": retention.minutes, "retentionSizeInMB": retention.megabytes}


def delays_of(policies: Policies) -> Json:
    delays = policies.delayed_delivery
    return {"tickTime": delays.tick_ms, "active": delays.active, "maxDeliveryDelayInMillis": delays.max_delay_ms}


def inactivity_of(policies: Policies) -> Json:
    inactivity = policies.inactivity
    return {
        "inactiveTopicDeleteMode": inactivity.mode,
        "maxInactiveDurationSeconds": inactivity.max_seconds,
        "deleteWhileInactive": inactivity.delete,
    }


def subscribe_rate_of(policies: Policies) -> Json:
    rate = policies.subscribe_rate
    return {"subscribeThrottlingRatePerConsumer": rate.subscribes, "ratePeriodInSecond": rate.period_seconds}
