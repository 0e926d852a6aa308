"""/admin/v2: how fast messages may go out to one subscription of a topic."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.policies.kept import keep, kept_of, topic_of
from pulsarium.broker.admin.policies.policy import Json, with_value
from pulsarium.broker.admin.policies.rates import DISPATCH_RATE, RATE, rate_of_subscriptions
from pulsarium.broker.admin.policies.retention import policies_of_namespace
from pulsarium.broker.auth.needs import topic_policy
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.registry import of_topic, route
from pulsarium.broker.http.reply import Reply, done, json_reply, nothing

FIELD = "subscriptionPolicies"  # by subscription
DISPATCH = "dispatchRate"
OF_ALL = "subscriptionDispatchRate"  # of topics and namespaces, by cluster
PATHS = of_topic("/{subscription}/dispatchRate")
WRITE = topic_policy(RATE, write=True)


@route("GET", *PATHS, needs=topic_policy(RATE, write=False))
def get_rate(call: Call) -> Reply:
    """The subscription's rate; ?applied=true: that of all subscriptions of the topic, if it has none."""
    name = topic_of(call)
    kept = kept_of(call, name)
    rate = kept.get(FIELD, {}).get(call.encoded_parameter("subscription"), {}).get(DISPATCH)
    if rate is None and call.flag("applied"):
        rate = (
            _of_all(call, kept)
            or _of_all(call, policies_of_namespace(call))
            or rate_of_subscriptions(call.broker.config)
        )
    return nothing() if rate is None else json_reply(rate)


@route("POST", *PATHS, needs=WRITE)
def set_rate(call: Call) -> Reply:
    """Set it; a rate that limits nothing changes nothing."""
    rate = DISPATCH_RATE.read(call)
    topic_of(call)
    if rate is None or (rate["dispatchThrottlingRateInMsg"] <= 0 and rate["dispatchThrottlingRateInByte"] <= 0):
        return done()
    return _change(call, {DISPATCH: rate})


@route("DELETE", *PATHS, needs=WRITE)
def delete_rate(call: Call) -> Reply:
    """Take it away."""
    return _change(call, None)


def _change(call: Call, policies: Json | None) -> Reply:
    name = topic_of(call)
    kept = kept_of(call, name)
    of_subscriptions = with_value(kept.get(FIELD, {}), call.encoded_parameter("subscription"), policies)
    return keep(call, name, {**kept, FIELD: of_subscriptions})


def _of_all(call: Call, kept: Json) -> Any:
    return (kept.get(OF_ALL) or {}).get(call.broker.metadata.cluster)
