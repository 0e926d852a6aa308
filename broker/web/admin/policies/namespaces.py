"""/admin/v2/namespaces: each policy of a namespace, by the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pulsarium.broker.auth.needs import namespace_policy
from pulsarium.broker.model.namespace import values
from pulsarium.broker.web.admin.policies.policy import MISSING, Json, PolicyRoutes, PolicyRule, named, taken
from pulsarium.broker.web.admin.policies.rules import OF_NAMESPACES
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import Handler, Route
from pulsarium.broker.web.http.reply import HttpReply
from pulsarium.rest import policies as rows

NO_OTHERS: Json = {}
NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
POLICIES: tuple[PolicyRoutes, ...] = tuple(
    found
    for row in rows.POLICIES
    for found in taken(
        row, row.namespace, OF_NAMESPACES.get(row, PolicyRule()), namespace_policy, values.OF_NAMESPACES.get(row)
    )
)


def _routes(policy: PolicyRoutes) -> Iterator[tuple[Route, Handler]]:
    """Yield the routes and handlers of one policy."""
    rule = policy.rule

    def get(call: Call) -> HttpReply:
        kept = call.broker.metadata.namespaces.get(call.namespace)
        if kept is None:
            raise AdminError(404, rule.missing_for_get)
        return policy.shown(call, kept)

    def set_(call: Call) -> HttpReply:
        value = policy.read_value(call)
        policy.check(call, call.broker.metadata.namespaces.get(call.namespace, {}), value)
        return change(call, value, rule.missing, rule.beside(call, value))

    def delete(call: Call) -> HttpReply:
        return change(call, None, rule.missing_for_delete or rule.missing)

    def change(call: Call, value: Any, missing: tuple[int, str], beside: Json = NO_OTHERS) -> HttpReply:
        metadata, name = call.broker.metadata, call.namespace
        kept = metadata.namespaces.get(name)
        if kept is None:
            raise AdminError(*missing, otherwise=AdminError(404, MISSING))
        metadata.put_namespace(name, {**policy.changed(call, kept, value), **beside})
        return rule.answer

    for method in policy.methods:
        handler = {"GET": get, "DELETE": delete}.get(method, set_)
        yield (
            Route(method, f"{NAMESPACE}/{policy.word}", policy.needs(write=method != "GET")),
            named(handler, f"{method.lower()}_{policy.word}", policy.row.about),
        )


__routes__ = tuple(found for policy in POLICIES for found in _routes(policy))
