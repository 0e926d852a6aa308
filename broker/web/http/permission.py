"""Authenticate the caller of a route, and check that its role has the rights that the route needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pulsarium.broker.auth.authorization import (
    Authorization,
    OperationTarget,
    TenantNotFound,
    WrongSubscriptionName,
    of_namespace,
    of_topic,
)
from pulsarium.broker.auth.identity import NOBODY, AuthenticationError, HttpCredentials, Principal
from pulsarium.broker.auth.needs import Needs, ObjectKind
from pulsarium.broker.cluster import Broker
from pulsarium.broker.logs import PartLog
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, ContainerError
from pulsarium.broker.web.http.registry import Route
from pulsarium.broker.web.http.request import HttpRequest
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import NamespaceName, TopicName

log = PartLog("auth")
admin_log = PartLog("admin")

TO_AUTHENTICATE: Final = "Need to authenticate to perform the request"
INVALID_PAIR: Final = "Invalid combination of Original principal cannot be empty if the request is via proxy."
NOT_ADMIN: Final = "Don't have permission to administrate resources on this tenant"
OF_NAMESPACES: Final = (ObjectKind.NAMESPACE, ObjectKind.NAMESPACE_POLICY, ObjectKind.TOPIC_POLICY)  # 403, others 401
# TenantOperations whose refusal names no tenant. Superusers and admins of the tenant may do them.
OF_TENANTS: Final = frozenset({"LIST_TENANTS", "GET_TENANT", "CREATE_TENANT", "UPDATE_TENANT", "DELETE_TENANT"})
ORIGINAL_PRINCIPAL: Final = "x-original-principal"
# Pulsar's own folders. /status.html and the page at / are open, and so is /metrics by default.
ASKED: Final = ("admin", "lookup", "topics", "pulsarium", "lab", "ws")
SUBSCRIPTION: Final = ("subscription", "subName", "subscriptionName")


def principal_of(broker: Broker, request: HttpRequest) -> Principal:
    """Return the principal of a request. Raise `ContainerError` 401 for credentials that prove no role."""
    authentication = broker.cluster.authentication
    if authentication is None or not is_asked(broker, request.path):
        return NOBODY
    credentials = HttpCredentials(request.headers, request.query, request.caller.certificate)
    try:
        identity = authentication.of_request(credentials)
    except AuthenticationError as error:
        admin_log.warning(
            "refused a request without valid credentials", peer=request.caller.host, path=request.path, reason=error
        )
        raise ContainerError(401, str(error)) from None
    return Principal(identity.role, request.headers.get(ORIGINAL_PRINCIPAL))


def is_asked(broker: Broker, path: str) -> bool:
    """Return whether a path needs a proved role."""
    folder = path.lstrip("/").partition("/")[0]
    return folder in ASKED or (folder == "metrics" and broker.config.authenticateMetricsEndpoint)


def check_permission(call: Call, route: Route) -> None:
    """Raise `AdminError` when the caller lacks the rights. Without authorization, check nothing."""
    if call.broker.cluster.authorization is not None:
        for target in targets(call, route.needs):
            check_target(call, route.needs, target)


def check_target(call: Call, needs: Needs, target: OperationTarget) -> None:
    """Raise `AdminError` when the caller lacks the rights on a target that the path does not name."""
    authorization = call.broker.cluster.authorization
    if authorization is not None and not _allows(authorization, call, needs, target):
        refused = _refusal(authorization, call, needs, target)
        log.warning("refused an unauthorized call", role=call.principal, needs=needs, path=call.path)
        raise refused


def _allows(authorization: Authorization, call: Call, needs: Needs, target: OperationTarget) -> bool:
    try:
        return authorization.allows(call.principal, needs, target)
    except TenantNotFound as error:
        if needs.operation in OF_TENANTS:
            return False
        raise AdminError(404, str(error)) from None
    except WrongSubscriptionName as error:
        raise AdminError(401, str(error)) from None


def targets(call: Call, needs: Needs) -> Iterator[OperationTarget]:
    """Yield the targets of a call: one, or several for routes that take a list of topics.

    Raise `AdminError` for invalid names.
    """
    parts = call.parameters
    if needs.kind in (ObjectKind.TOPIC, ObjectKind.TOPIC_POLICY) or (
        needs.kind is ObjectKind.TENANT_ADMIN and "topic" in parts
    ):
        subscription = next((call.encoded_parameter(name) for name in SUBSCRIPTION if name in parts), "")
        yield of_topic(_topic(call), subscription)
    elif needs.kind in (ObjectKind.NAMESPACE, ObjectKind.NAMESPACE_POLICY) and "namespace" not in parts:
        yield from map(of_namespace, _namespaces_of_query(call))
    elif needs.kind in (ObjectKind.NAMESPACE, ObjectKind.NAMESPACE_POLICY):
        yield of_namespace(NamespaceName.parse(call.namespace))
    elif needs.kind is ObjectKind.TENANT_ADMIN and "tenant" not in parts:
        yield from map(OperationTarget, sorted(_tenants_of_topics(call)))
    else:
        yield OperationTarget(call.parameter("tenant") if "tenant" in parts else "")


def _topic(call: Call) -> TopicName:
    if "domain" not in call.parameters:
        return call.topic_anywhere
    path = f"{call.parameter('tenant')}/{call.parameter('namespace')}/{call.encoded_parameter('topic')}"
    try:
        return TopicName.parse(f"{call.parameter('domain')}://{path}")
    except InvalidTopicName:
        raise AdminError(412, "Topic name is not valid") from None


def _namespaces_of_query(call: Call) -> Iterator[NamespaceName]:
    """Yield a namespace of ?tenant=, for calls about all namespaces.

    Without a tenant, the handler answers the error.
    """
    try:
        yield NamespaceName.parse(f"{call.query['tenant']}/any")
    except (KeyError, InvalidTopicName):
        return


def _tenants_of_topics(call: Call) -> set[str]:
    """Return the tenants of a list of topics in the body. The handler refuses any other body."""
    body = call.json()
    names = [each.get("topic") for each in body if isinstance(each, dict)] if isinstance(body, list) else []
    found: set[str] = set()
    for name in names:
        try:
            found.add(TopicName.parse(str(name)).tenant)
        except InvalidTopicName:
            continue
    return found


def _refusal(authorization: Authorization, call: Call, needs: Needs, target: OperationTarget) -> AdminError:
    who, kind = call.principal, needs.kind
    status = 403 if kind in OF_NAMESPACES else 401
    if kind is ObjectKind.SUPERUSER:
        return AdminError(401, _no_superuser(authorization, who))
    if kind is ObjectKind.TENANT_ADMIN:
        return _no_admin(authorization, who)
    both = f"originalPrincipal [{_java(who.original)}] and clientAppId [{_java(who.role)}] about operation"
    if kind is ObjectKind.CLUSTER or kind is ObjectKind.CLUSTER_POLICY:
        what = "ClusterOperation" if kind is ObjectKind.CLUSTER else "ClusterPolicyOperation"
        cluster = call.parameter("cluster") if "cluster" in call.parameters else call.broker.config.clusterName
        text = f"Unauthorized to validateBothSuperuserAnd{what} for {both} [{needs.operation}] on cluster [{cluster}]"
        return AdminError(401, text)
    if kind is ObjectKind.BROKER:
        broker = call.query.get("brokerId", "").strip() or call.broker.web_address
        text = f"Unauthorized to validateBothSuperuserAndBrokerOperation for {both} [{needs.operation}]"
        return AdminError(401, f"{text} on broker [{broker}]")
    if needs.operation in OF_TENANTS:
        text = f"Unauthorized to validateBothTenantOperationAndSuperUser for {both} [{needs.operation}] "
        return AdminError(401, text)
    if who.role is None:
        return AdminError(status, TO_AUTHENTICATE)
    if kind is ObjectKind.TENANT:
        text = f"Unauthorized to validateTenantOperation for {both} [{needs.operation}] on tenant [{target.tenant}]"
        return AdminError(401, text)
    what = "Topic" if kind in (ObjectKind.TOPIC, ObjectKind.TOPIC_POLICY) else "Namespace"
    check = f"validate{what}{'Policy' if needs.policy else ''}Operation"
    of = f"{what.lower()} [{target.topic if what == 'Topic' else target.namespace}]"
    text = f"Unauthorized to {check} for operation [{needs.operation}] on {of}"
    if needs.policy:
        text += f" on policy [{needs.policy}]"
    forbidden = needs.forbidden and call.broker.profile.forbids_as_pips_say
    return AdminError(403 if forbidden else status, text)


def _no_superuser(authorization: Authorization, who: Principal) -> str:
    if not authorization.is_valid(who):
        return INVALID_PAIR
    if not authorization.is_proxy(who.role):
        return "This operation requires super-user access"
    if not authorization.is_superuser(who.role):
        return f"Proxy not authorized for super-user operation (proxy:{who.role})"
    return f"Original principal not authorized for super-user operation (original:{who.original})"


def _no_admin(authorization: Authorization, who: Principal) -> AdminError:
    if who.role is None:
        return AdminError(403, TO_AUTHENTICATE)
    if not authorization.is_valid(who):
        return AdminError(401, INVALID_PAIR)
    if authorization.is_proxy(who.role):
        text = f"Proxy not authorized to access resource (proxy:{who.role},original:{who.original})"
        return AdminError(401, text)
    return AdminError(401, NOT_ADMIN)


def _java(role: str | None) -> str:
    return "null" if role is None else role
