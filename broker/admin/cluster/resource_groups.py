"""/admin/v2/resourcegroups: limits that several namespaces share, and which namespace is in which."""

from __future__ import annotations

from pulsarium.broker.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.admin.policies.policy import POLICIES_MISSING, with_value
from pulsarium.broker.admin.policies.values import DATA, integer, record
from pulsarium.broker.auth.needs import SUPERUSER, namespace_policy
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError, unexpected_body
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, done, json_reply, nothing, text_reply
from pulsarium.broker.model.rate.limits import FOLDER

GROUPS = "/admin/v2/resourcegroups"
ONE = f"{GROUPS}/{{resourcegroup}}"
FIELD = "resource_group_name"
INTEGER, LONG = integer("java.lang.Integer"), integer("java.lang.Long", 64)
GROUP = record(
    f"{DATA}.ResourceGroup",
    {
        "publishRateInMsgs": INTEGER,
        "publishRateInBytes": LONG,
        "dispatchRateInMsgs": INTEGER,
        "dispatchRateInBytes": LONG,
    },
)
UNLIMITED = {"publishRateInMsgs": -1, "publishRateInBytes": -1, "dispatchRateInMsgs": -1, "dispatchRateInBytes": -1}
WRITE = namespace_policy("RESOURCEGROUP", write=True)


@route("GET", GROUPS, needs=SUPERUSER)
def get_groups(call: Call) -> Reply:
    """Their names."""
    return json_reply(sorted(call.broker.metadata.records.inside(FOLDER)))


@route("GET", ONE, needs=SUPERUSER)
def get_group(call: Call) -> Reply:
    """The limits of one."""
    group = call.broker.metadata.records.get(FOLDER, call.parameter("resourcegroup"))
    if group is None:
        raise AdminError(404, "ResourceGroup does not exist")
    return json_reply(group)


@route("PUT", ONE, needs=SUPERUSER)
def put_group(call: Call) -> Reply:
    """Make one, or change what is said of it."""
    sent = GROUP.read(call)
    name, records = call.parameter("resourcegroup"), call.broker.metadata.records
    if sent is None:
        raise unexpected_body("null")
    records.put(FOLDER, name, value={**(records.get(FOLDER, name) or UNLIMITED), **sent})
    call.broker.topics.settings_changed()
    return done()


@route("DELETE", ONE, needs=SUPERUSER)
def delete_group(call: Call) -> Reply:
    """Delete one that no namespace is in."""
    name, metadata = call.parameter("resourcegroup"), call.broker.metadata
    if any(policies.get(FIELD) == name for policies in metadata.namespaces.values()):
        raise AdminError(412, "ResourceGroup is in use")
    if metadata.records.get(FOLDER, name) is None:
        raise unexpected_body(f"path {FOLDER}/{name} not found.", AdminError(404, "ResourceGroup does not exist"))
    metadata.records.forget(FOLDER, name)
    return done()


@route("GET", f"{NAMESPACE}/resourcegroup", needs=namespace_policy("RESOURCEGROUP", write=False))
def get_group_of_namespace(call: Call) -> Reply:
    """The group that a namespace is in."""
    name = call.broker.metadata.namespaces[call.existing_namespace].get(FIELD)
    return nothing() if name is None else text_reply(name)


@route("POST", f"{NAMESPACE}/resourcegroup/{{resourcegroup}}", needs=WRITE)
def set_group_of_namespace(call: Call) -> Reply:
    """Put a namespace into one."""
    name = call.parameter("resourcegroup")
    if call.broker.metadata.records.get(FOLDER, name) is None:
        raise AdminError(412, "ResourceGroup does not exist")
    return _change(call, name)


@route("DELETE", f"{NAMESPACE}/resourcegroup", needs=WRITE)
def delete_group_of_namespace(call: Call) -> Reply:
    """Take a namespace out of its group."""
    return _change(call, None)


def _change(call: Call, name: str | None) -> Reply:
    metadata, namespace = call.broker.metadata, call.namespace
    if namespace not in metadata.namespaces:
        raise AdminError(404, POLICIES_MISSING)
    metadata.put_namespace(namespace, with_value(metadata.namespaces[namespace], FIELD, name))
    return done()
