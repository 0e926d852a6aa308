"""/admin/v2: grants on namespaces, topics and subscriptions, stored as auth_policies of a namespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulsarium.broker.auth.needs import TENANT_ADMIN, namespace_operation
from pulsarium.broker.jackson.kinds import TEXT, TEXTS, JavaType, choice, collection, wrong_type
from pulsarium.broker.model.namespace.values import DATA
from pulsarium.broker.web.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.web.admin.policies.policy import MISSING
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, request_failed, unexpected_body
from pulsarium.broker.web.http.registry import of_topic, route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName
from pulsarium.rest.policies import NAMESPACE_DEFAULTS

FIELD = "auth_policies"
OF_NAMESPACE, OF_TOPICS, OF_SUBSCRIPTIONS = "namespace_auth", "destination_auth", "subscription_auth_roles"
PERMISSIONS = f"{NAMESPACE}/permissions"
TOPIC_PERMISSIONS = of_topic("/permissions")
TOPIC_ROLE = of_topic("/permissions/{role}")
ON_TOPICS = "/admin/v2/namespaces/{0}PermissionsOnTopics"
GET = namespace_operation("GET_PERMISSION")
GRANT = namespace_operation("GRANT_PERMISSION")
REVOKE = namespace_operation("REVOKE_PERMISSION")

ACTION = choice(f"{DATA}.AuthAction", ("produce", "consume", "functions", "sources", "sinks", "packages"))
ORDER = ("consume", "produce", "functions", "sinks", "packages", "sources", None)
SET_OF_ACTIONS = collection("java.util.HashSet", ACTION)

NULL_ROLE = "Null key for a Map not allowed in JSON (use a converting NullKeySerializer?)"

Grants = Mapping[str, Any]


def read_actions(value: Any) -> list[str | None]:
    """Return actions in Pulsar's order. An unknown action is null."""
    return in_order(SET_OF_ACTIONS.of(value))


def in_order(actions: Any) -> list[str | None]:
    """Return actions in the order in which Pulsar lists them."""
    return sorted(set(actions), key=ORDER.index)


ACTIONS = JavaType(SET_OF_ACTIONS.java_type, read_actions)


def grants(call: Call, namespace: str, what: str) -> dict[str, Any]:
    """Return one kind of grants of a namespace."""
    kept = call.broker.metadata.namespaces[namespace].get(FIELD) or NAMESPACE_DEFAULTS[FIELD]
    return dict(kept.get(what) or {})


def keep(call: Call, namespace: str, what: str, granted: Grants) -> HttpReply:
    """Store one kind of grants of a namespace."""
    metadata = call.broker.metadata
    kept = metadata.namespaces[namespace]
    auth = {**(kept.get(FIELD) or NAMESPACE_DEFAULTS[FIELD]), what: granted}
    metadata.put_namespace(namespace, {**kept, FIELD: auth})
    return done()


def without(granted: Grants, name: str) -> dict[str, Any]:
    """Return grants without those of one role or subscription."""
    return {each: value for each, value in granted.items() if each != name}


def known(call: Call, text: str) -> str:
    """Return the namespace of the path. Raise `AdminError` 404 with `text` when it does not exist."""
    if call.namespace not in call.broker.metadata.namespaces:
        raise AdminError(404, text)
    return call.namespace


# namespaces


@route("GET", PERMISSIONS, needs=GET)
def get_permissions(call: Call) -> HttpReply:
    """Return the granted actions of the namespace, by role."""
    return json_reply(grants(call, call.existing_namespace, OF_NAMESPACE))


@route("POST", f"{PERMISSIONS}/{{role}}", needs=GRANT)
def grant(call: Call) -> HttpReply:
    """Set the actions that a role is granted on the namespace, in place of earlier ones."""
    actions = call.read(ACTIONS)
    if actions is None:
        raise AdminError(400, "Actions should not be null")
    name = known(call, "Topic's namespace does not exist")
    granted = grants(call, name, OF_NAMESPACE)
    return keep(call, name, OF_NAMESPACE, {**granted, call.parameter("role"): actions})


@route("DELETE", f"{PERMISSIONS}/{{role}}", needs=REVOKE)
def revoke(call: Call) -> HttpReply:
    """Revoke all actions of a role on the namespace."""
    name = known(call, "")
    return keep(call, name, OF_NAMESPACE, without(grants(call, name, OF_NAMESPACE), call.parameter("role")))


# subscriptions


@route("GET", f"{PERMISSIONS}/subscription", needs=GET)
def get_subscription_permissions(call: Call) -> HttpReply:
    """Return the roles that may use a subscription, by subscription."""
    return json_reply(grants(call, call.existing_namespace, OF_SUBSCRIPTIONS))


@route("POST", f"{PERMISSIONS}/subscription/{{subscription}}", needs=GRANT)
def grant_subscription(call: Call) -> HttpReply:
    """Set the roles that may use a subscription."""
    roles = call.read(TEXTS)
    if roles is None:
        raise AdminError(400, "Roles should not be null")
    if call.namespace not in call.broker.metadata.namespaces:
        raise unexpected_body("", AdminError(404, MISSING))
    name = call.namespace
    granted = grants(call, name, OF_SUBSCRIPTIONS)
    return keep(call, name, OF_SUBSCRIPTIONS, {**granted, call.parameter("subscription"): roles})


@route("DELETE", f"{PERMISSIONS}/{{subscription}}/{{role}}", needs=REVOKE)
def revoke_subscription(call: Call) -> HttpReply:
    """Revoke a role's permission to use a subscription. Without any role left, every role may use it."""
    name, subscription = known(call, ""), call.parameter("subscription")
    granted = grants(call, name, OF_SUBSCRIPTIONS)
    if subscription not in granted:
        raise unexpected_body(
            "couldn't find subscription", AdminError(404, f"No grants of subscription {subscription}")
        )
    roles = [role for role in granted[subscription] if role != call.parameter("role")]
    changed = {**granted, subscription: roles} if roles else without(granted, subscription)
    return keep(call, name, OF_SUBSCRIPTIONS, changed)


# topics


def existing_topic(call: Call, name: TopicName) -> TopicName:
    """Return the topic. Raise `AdminError` 404 when it does not exist."""
    broker = call.broker
    scalable = name.is_scalable and broker.cluster.scalable.find(name) is not None
    if not (scalable or broker.topics.exists(name) or broker.metadata.partitions_of(name)):
        raise AdminError(404, f"Topic {name} not found")
    return name


def put_topic(granted: Grants, topic: TopicName, roles: Grants) -> dict[str, Any]:
    """Return the grants of all topics with those of one topic replaced. Empty grants are removed."""
    return {**granted, str(topic): roles} if roles else without(granted, str(topic))


@route("GET", *TOPIC_PERMISSIONS, needs=TENANT_ADMIN, anywhere=True)
def get_topic_permissions(call: Call) -> HttpReply:
    """Return the actions on a topic by role, granted on the topic or on its namespace."""
    name = existing_topic(call, call.topic)
    found = grants(call, call.namespace, OF_NAMESPACE)
    for role, actions in grants(call, call.namespace, OF_TOPICS).get(str(name), {}).items():
        found[role] = in_order({*found.get(role, ()), *actions})
    return json_reply(found)


@route("POST", *TOPIC_ROLE, needs=TENANT_ADMIN, anywhere=True)
def grant_topic(call: Call) -> HttpReply:
    """Set the actions that a role is granted on a topic."""
    actions = call.read(ACTIONS) or []
    name = existing_topic(call, call.topic)
    granted = grants(call, call.namespace, OF_TOPICS)
    roles = {**granted.get(str(name), {}), call.parameter("role"): actions}
    return keep(call, call.namespace, OF_TOPICS, put_topic(granted, name, roles))


@route("DELETE", *TOPIC_ROLE, needs=TENANT_ADMIN, anywhere=True)
def revoke_topic(call: Call) -> HttpReply:
    """Revoke a role's actions on a topic and its partitions."""
    name, role = existing_topic(call, call.topic), call.parameter("role")
    granted = grants(call, call.namespace, OF_TOPICS)
    partitions = map(name.partition, range(call.broker.metadata.partitions_of(name)))
    for each in (name, *partitions):
        granted = put_topic(granted, each, without(granted.get(str(each), {}), role))
    return keep(call, call.namespace, OF_TOPICS, granted)


# several topics at once


@route("POST", ON_TOPICS.format("grant"), needs=TENANT_ADMIN)
def grant_topics(call: Call) -> HttpReply:
    """Grant roles actions on several topics of one namespace."""
    options = _options(call, "Grant")
    namespace = str(options[0][0].namespace_name)
    granted = grants(call, namespace, OF_TOPICS)
    for topic, role, actions in options:
        granted = put_topic(granted, topic, {**granted.get(str(topic), {}), role: actions})
    return keep(call, namespace, OF_TOPICS, granted)


@route("POST", ON_TOPICS.format("revoke"), needs=TENANT_ADMIN)
def revoke_topics(call: Call) -> HttpReply:
    """Revoke roles' actions on several topics of one namespace."""
    options = _options(call, "Revoke")
    namespace = str(options[0][0].namespace_name)
    granted = grants(call, namespace, OF_TOPICS)
    for topic, role, _ in options:
        granted = put_topic(granted, topic, without(granted.get(str(topic), {}), role))
    return keep(call, namespace, OF_TOPICS, granted)


def _options(call: Call, what: str) -> list[tuple[TopicName, str, list[str | None]]]:
    """Return the body's options: existing topics of one namespace, each with a role and actions."""
    java_type = f"org.apache.pulsar.client.admin.{what}TopicPermissionOptions"
    sent = call.json()
    if sent is None:
        raise request_failed()
    if not isinstance(sent, list) or not all(isinstance(each, dict) for each in sent):
        raise wrong_type(f"java.util.ArrayList<{java_type}>", sent)
    options = [_option(each) for each in sent]
    if len({topic.namespace_name for topic, *_ in options}) != 1:
        raise AdminError(400, "The namespace should be the same")
    first = options[0][0]
    if first.tenant not in call.broker.metadata.tenants:
        raise AdminError(404, "Tenant does not exist")
    for topic, *_ in options:
        existing_topic(call, topic)
    return options


def _option(sent: Grants) -> tuple[TopicName, str, list[str | None]]:
    actions = sent.get("actions")
    try:
        topic = TopicName.parse(TEXT.of(sent.get("topic")))
    except InvalidTopicName:
        raise request_failed() from None
    if sent.get("role") is None:
        raise unexpected_body(NULL_ROLE, AdminError(400, "Role should not be null"))
    return topic, TEXT.of(sent["role"]), read_actions(actions) if actions is not None else []
