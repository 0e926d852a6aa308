"""/admin/v2/persistent and non-persistent: each policy of a topic, by the table.

They are stored by the topic's name, or by that of the partitioned topic, and override those of the namespace. With
?isGlobal=true they are stored apart, for all clusters. Local policies of a topic override its global ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.broker.auth.needs import topic_policy
from pulsarium.broker.model.namespace.values import DISPATCH_RATE
from pulsarium.broker.model.policy.policies import in_force
from pulsarium.broker.web.admin.policies.policy import (
    Json,
    PolicyRoutes,
    PolicyRule,
    keep,
    kept_of,
    named,
    taken,
    topic_of,
    with_value,
)
from pulsarium.broker.web.admin.policies.retention import policies_of_namespace
from pulsarium.broker.web.admin.policies.rules import OF_TOPICS
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.registry import Handler, Route, of_topic, route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply, nothing
from pulsarium.rest import policies as rows

POLICIES: tuple[PolicyRoutes, ...] = tuple(
    found for row in rows.POLICIES for found in taken(row, row.topic, OF_TOPICS.get(row, PolicyRule()), topic_policy)
)
FIELD = "subscriptionPolicies"  # by subscription
DISPATCH = "dispatchRate"
PATHS = of_topic("/{subscription}/dispatchRate")
WRITE = topic_policy(rows.SUBSCRIPTION_DISPATCH_RATE.right, write=True)


def _routes(policy: PolicyRoutes) -> Iterator[tuple[Route, Handler]]:
    """Yield the routes and handlers of one policy."""
    row, rule, is_local = policy.row, policy.rule, policy.place.is_local

    def get(call: Call) -> HttpReply:
        name = topic_of(call)
        kept = kept_of(call, name, is_local=is_local)
        if not (policy.place.applied and call.flag("applied")):
            return policy.shown(call, kept)
        namespace = policies_of_namespace(call)
        if rule.in_force is not None:
            value = rule.in_force(call, kept, namespace)
        else:
            value = in_force(row, call.broker.config, kept, namespace)
        return rule.unset if value is None else json_reply(value)

    def set_(call: Call) -> HttpReply:
        value = policy.read_value(call)
        name = topic_of(call)
        kept = kept_of(call, name, is_local=is_local)
        policy.check(call, kept, value)
        if value is None and rule.keeps_at_null:
            return done()
        return keep(call, name, policy.changed(call, kept, value), is_local=is_local)

    def delete(call: Call) -> HttpReply:
        name = topic_of(call)
        kept = kept_of(call, name, is_local=is_local)
        return keep(call, name, policy.changed(call, kept, None), is_local=is_local)

    for method in policy.methods:
        handler = {"GET": get, "DELETE": delete}.get(method, set_)
        needs = policy.needs(write=method != "GET")
        for path in of_topic(f"/{policy.word}"):
            yield Route(method, path, needs), named(handler, f"{method.lower()}_{policy.word}", row.about)


__routes__ = tuple(found for policy in POLICIES for found in _routes(policy))


@route("DELETE", *of_topic("/policies"), needs=topic_policy("MAX_PRODUCERS", write=True), anywhere=True)
def delete_policies(call: Call) -> HttpReply:
    """Remove all policies of the topic, which need not exist."""
    call.broker.metadata.forget_topic_policies(call.topic)
    return done()


@route("GET", *PATHS, needs=topic_policy(rows.SUBSCRIPTION_DISPATCH_RATE.right, write=False))
def get_rate(call: Call) -> HttpReply:
    """Return the dispatch rate of a subscription.

    With ?applied=true, the topic's rate for all subscriptions may apply.
    """
    name = topic_of(call)
    kept = kept_of(call, name)
    rate = kept.get(FIELD, {}).get(call.encoded_parameter("subscription"), {}).get(DISPATCH)
    if rate is None and call.flag("applied"):
        levels = (kept, policies_of_namespace(call))
        rate = in_force(rows.SUBSCRIPTION_DISPATCH_RATE, call.broker.config, *levels)
    return nothing() if rate is None else json_reply(rate)


@route("POST", *PATHS, needs=WRITE)
def set_rate(call: Call) -> HttpReply:
    """Set the dispatch rate of a subscription. As in Pulsar, a rate without a limit changes nothing."""
    rate = call.read(DISPATCH_RATE)
    topic_of(call)
    if rate is None or (rate["dispatchThrottlingRateInMsg"] <= 0 and rate["dispatchThrottlingRateInByte"] <= 0):
        return done()
    return _change(call, {DISPATCH: rate})


@route("DELETE", *PATHS, needs=WRITE)
def delete_rate(call: Call) -> HttpReply:
    """Remove the dispatch rate of a subscription."""
    return _change(call, None)


def _change(call: Call, policies: Json | None) -> HttpReply:
    name = topic_of(call)
    kept = kept_of(call, name)
    of_subscriptions = with_value(kept.get(FIELD, {}), call.encoded_parameter("subscription"), policies)
    return keep(call, name, {**kept, FIELD: of_subscriptions})
