"""The auto scale policies of scalable topics and of namespaces over REST."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulsarium.broker.auth.needs import namespace_policy
from pulsarium.broker.jackson.kinds import BOOLEAN, INTEGER, JavaType, double, integer, record
from pulsarium.broker.model.namespace.values import DATA
from pulsarium.broker.model.scalable.auto_scale import BUCKET_OVERRIDES, OVERRIDES, PolicyError, effective
from pulsarium.broker.model.scalable.controller import POLICY
from pulsarium.broker.web.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.web.admin.scalable.routes import TOPIC, scalable_route, topic_of
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply, nothing

OF_TOPIC = f"{TOPIC}/autoScalePolicy"
OF_NAMESPACE = f"{NAMESPACE}/{POLICY}"
KINDS: Mapping[str, JavaType] = {
    "Boolean": BOOLEAN,
    "Integer": INTEGER,
    "Long": integer("java.lang.Long", 64),
    "Double": double("java.lang.Double"),
}


def _kind(fields: Mapping[str, str]) -> JavaType:
    return record(f"{DATA}.AutoScalePolicyOverride", {name: KINDS[kind] for name, kind in fields.items()})


OVERRIDE = _kind(OVERRIDES)
OVERRIDE_WITH_BUCKETS = _kind({**OVERRIDES, **BUCKET_OVERRIDES})


@scalable_route("GET", OF_TOPIC)
def get(call: Call) -> HttpReply:
    """Return the override of a topic, or an empty body."""
    return _shown(topic_of(call).policy)


@scalable_route("POST", OF_TOPIC)
def set_(call: Call) -> HttpReply:
    """Replace the override of a topic."""
    override, topic = _override(call), topic_of(call)
    _check(call, call.broker.metadata.namespaces.get(call.namespace, {}).get(POLICY), override)
    topic.set_policy(override)
    return done()


@scalable_route("DELETE", OF_TOPIC)
def delete(call: Call) -> HttpReply:
    """Delete the override of a topic."""
    topic_of(call).set_policy(None)
    return done()


@scalable_route("GET", OF_NAMESPACE, needs=namespace_policy("AUTO_TOPIC_CREATION", write=False))
def get_of_namespace(call: Call) -> HttpReply:
    """Return the override of a namespace, or an empty body."""
    return _shown(call.broker.metadata.namespaces[call.existing_namespace].get(POLICY))


@scalable_route("POST", OF_NAMESPACE, needs=namespace_policy("AUTO_TOPIC_CREATION", write=True))
def set_of_namespace(call: Call) -> HttpReply:
    """Replace the override of a namespace."""
    override = _override(call)
    _check(call, override)
    return _change_namespace(call, override)


@scalable_route("DELETE", OF_NAMESPACE, needs=namespace_policy("AUTO_TOPIC_CREATION", write=True))
def delete_of_namespace(call: Call) -> HttpReply:
    """Delete the override of a namespace."""
    return _change_namespace(call, None)


def _change_namespace(call: Call, override: Mapping[str, Any] | None) -> HttpReply:
    metadata, name = call.broker.metadata, call.existing_namespace
    kept = {key: value for key, value in metadata.namespaces[name].items() if key != POLICY}
    metadata.put_namespace(name, kept if override is None else {**kept, POLICY: override})
    return done()


def _shown(override: Mapping[str, Any] | None) -> HttpReply:
    return nothing() if override is None else json_reply(override)


def _override(call: Call) -> dict[str, Any]:
    kind = OVERRIDE_WITH_BUCKETS if call.broker.profile.entry_buckets else OVERRIDE
    override: dict[str, Any] = call.read(kind) or {}
    return override


def _check(call: Call, *overrides: Mapping[str, Any] | None) -> None:
    try:
        effective(call.broker.config, *overrides, entry_buckets=call.broker.profile.entry_buckets)
    except PolicyError as error:
        raise AdminError(412, str(error)) from None
