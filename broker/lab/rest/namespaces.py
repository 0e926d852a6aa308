"""/lab/namespaces: namespaces for the length of a test."""

from __future__ import annotations

from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply
from pulsarium.broker.lab.namespaces import create_namespace
from pulsarium.broker.lab.rest.find import lab_of

ROOT = "/lab/namespaces"


@route("POST", ROOT)
def add_namespace(call: Call) -> Reply:
    """Create a namespace: {"name": "orders", "policies": {"message_ttl_in_seconds": 60}}, and return its full name.

    A name without a tenant belongs to `public`, with a number when the name is taken.
    """
    asked = call.json_object("java.util.Map") or {}
    name, policies = asked.get("name"), asked.get("policies", {})
    if not isinstance(name, str) or not isinstance(policies, dict) or asked.keys() - {"name", "policies"}:
        raise AdminError(400, "the body takes name, a text, and policies, an object of names and values")
    try:
        return json_reply({"name": create_namespace(lab_of(call).cluster, name, policies)})
    except ValueError as error:
        raise AdminError(400, str(error)) from None


@route("DELETE", f"{ROOT}/{{tenant}}/{{namespace}}")
def remove_namespace(call: Call) -> Reply:
    """Delete a namespace with its topics, now or after the last client has left."""
    lab_of(call).leaving.add(f"{call.parameter('tenant')}/{call.parameter('namespace')}")
    return done()
