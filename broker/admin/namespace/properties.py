"""/admin/v2/namespaces: the properties that users give a namespace, all at once and one by one."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.admin.policies.policy import with_value
from pulsarium.broker.admin.policies.values import TEXT, mapping
from pulsarium.broker.auth.needs import TENANT_ADMIN
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply, nothing, text_reply

FIELD = "properties"
ONE = f"{NAMESPACE}/property/{{key}}"
PROPERTIES = mapping(TEXT, "java.util.LinkedHashMap")


@route("GET", f"{NAMESPACE}/properties", needs=TENANT_ADMIN)
def get_properties(call: Call) -> Reply:
    """All of them."""
    if call.parameter("tenant") not in call.broker.metadata.tenants:
        raise AdminError(404, "Tenant does not exist")
    return json_reply(_kept(call))


@route("PUT", f"{NAMESPACE}/properties", needs=TENANT_ADMIN)
def put_properties(call: Call) -> Reply:
    """Give it more; no body changes nothing, where Pulsar never answers."""
    sent = PROPERTIES.read(call) or {}
    return _keep(call, {**_kept(call), **sent})


@route("DELETE", f"{NAMESPACE}/properties", needs=TENANT_ADMIN)
def delete_properties(call: Call) -> Reply:
    """Take all away."""
    _kept(call)
    return _keep(call, {})


@route("GET", ONE, needs=TENANT_ADMIN)
def get_property(call: Call) -> Reply:
    """One of them."""
    return _shown(_kept(call).get(call.parameter("key")))


@route("PUT", f"{ONE}/{{value}}", needs=TENANT_ADMIN)
def put_property(call: Call) -> Reply:
    """Set one."""
    return _keep(call, {**_kept(call), call.parameter("key"): call.parameter("value")})


@route("DELETE", ONE, needs=TENANT_ADMIN)
def delete_property(call: Call) -> Reply:
    """Take one away, and show what it was."""
    kept, key = _kept(call), call.parameter("key")
    _keep(call, with_value(kept, key, None))
    return _shown(kept.get(key))


def _shown(value: str | None) -> Reply:
    return nothing() if value is None else text_reply(value)


def _kept(call: Call) -> dict[str, Any]:
    kept: dict[str, Any] = call.broker.metadata.namespaces[call.existing_namespace].get(FIELD) or {}
    return kept


def _keep(call: Call, properties: dict[str, Any]) -> Reply:
    metadata, name = call.broker.metadata, call.namespace
    metadata.put_namespace(name, with_value(metadata.namespaces[name], FIELD, properties or None))
    return done()
