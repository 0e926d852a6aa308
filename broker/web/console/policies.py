"""The policies of a namespace or a topic: the value in effect, the level it comes from, and the form of its values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pulsarium.broker.auth.needs import namespace_policy, topic_policy
from pulsarium.broker.jackson.kinds import JavaType
from pulsarium.broker.model.namespace.values import kind_in_namespace
from pulsarium.broker.model.policy.policies import in_force
from pulsarium.broker.web.admin.policies.policy import MISSING
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, json_reply
from pulsarium.rest.policies import POLICIES, Policy, PolicyPath

Json = Mapping[str, Any]

SIMPLE: Final = {
    "boolean": "switch",
    "java.lang.Boolean": "switch",
    "int": "number",
    "long": "number",
    "double": "number",
    "java.lang.Integer": "number",
    "java.lang.Long": "number",
    "java.lang.Double": "number",
    "java.lang.String": "text",
    "java.util.ArrayList<java.lang.String>": "list",
    "java.util.HashSet<java.lang.String>": "list",
}
"""The kind of field that a person enters a value of a Java type in."""
UNITS: Final = {
    "millis": "milliseconds",
    "ms": "milliseconds",
    "second": "seconds",
    "minute": "minutes",
    "mb": "MB",
    "byte": "bytes",
    "msg": "messages",
}
"""The units of numbers, by words in the names of fields and in the meanings of policies."""


@route("GET", "/pulsarium/policies/{tenant}/{namespace}", needs=namespace_policy("ALL", write=False))
def get_policies_of_namespace(call: Call) -> HttpReply:
    """Return each policy of a namespace: its value in effect, and whether namespace or broker sets the value."""
    namespace = _namespace(call, call.namespace)
    return json_reply([_shown(call, row, row.namespace, ("namespace", namespace)) for row in _of(topic=False)])


@route(
    "GET",
    "/pulsarium/policies/{domain}/{tenant}/{namespace}/{topic}",
    needs=topic_policy("MAX_PRODUCERS", write=False),
    anywhere=True,
)
def get_policies_of_topic(call: Call) -> HttpReply:
    """Return each policy of a topic: its value in effect, and whether topic, namespace or broker sets the value."""
    name = call.topic_anywhere.partitioned_name
    topic = call.broker.metadata.topic_policies.get(str(name), {})
    levels = ("topic", topic), ("namespace", _namespace(call, str(name.namespace_name)))
    return json_reply([_shown(call, row, row.topic, *levels) for row in _of(topic=True)])


def _of(*, topic: bool) -> Iterator[Policy[Any]]:
    for row in POLICIES:
        place = row.topic if topic else row.namespace
        if place is not None and place.setting:
            yield row


def _namespace(call: Call, name: str) -> Json:
    found = call.broker.metadata.namespaces.get(name)
    if found is None:
        raise AdminError(404, MISSING)
    return found


def _shown(call: Call, row: Policy[Any], place: PolicyPath | None, *levels: tuple[str, Json]) -> dict[str, Any]:
    assert place is not None
    value = in_force(row, call.broker.config, *(kept for _, kept in levels))
    source = next((level for level, kept in levels if _is_set(call, row, kept)), "broker")
    removal = place.removed_at or (place.word if place.removal else "")
    return {
        "word": place.word,
        "about": row.about,
        "value": value,
        "from": source,
        "key": row.conf if isinstance(row.conf, str) else ", ".join(row.conf.values()),
        "set": place.setting,
        "inQuery": place.in_query,
        "remove": "" if not removal else place.removal or "DELETE",
        "removeAt": removal,
        "hasBody": row.has_body,
        "form": _form(kind_in_namespace(row), f"{row.about.split()[0]} {place.word}"),
    }


def _form(kind: JavaType, told: str) -> dict[str, Any]:
    """Return how a person enters a value: the kind of the field, its choices, its unit, or the fields inside it."""
    if kind.choices:
        return {"kind": "choice", "choices": list(kind.choices)}
    if kind.fields:
        return {"kind": "record", "fields": [[name, _form(each, name)] for name, each in kind.fields.items()]}
    shown = SIMPLE.get(kind.java_type, "json")
    if shown != "number":
        return {"kind": shown}
    unit = next((unit for word, unit in UNITS.items() if re.search(f"{word}s?(?![a-z])", told, re.I)), "")
    return {"kind": shown, "whole": "ouble" not in kind.java_type, "unit": unit}


def _is_set(call: Call, row: Policy[Any], kept: Json) -> bool:
    value = kept.get(row.kept)
    if value is not None and row.per_cluster:
        value = value.get(call.broker.config.clusterName)
    return value is not None
