"""Authorize operations, as Pulsar's PulsarAuthorizationProvider does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulsarium.broker.auth.grants import Grants
from pulsarium.broker.auth.identity import Principal
from pulsarium.broker.auth.needs import Needs, ObjectKind
from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.proto.topic_name import NamespaceName, SegmentName, TopicName

# NamespaceOperation -> actions of which one is enough. Operations that are missing here are for admins of the tenant.
NAMESPACE_ACTIONS: Final = {
    "GET_TOPIC": ("consume", "produce"),
    "GET_TOPICS": ("consume", "produce"),
    "GET_BUNDLE": ("consume", "produce"),
    "UNSUBSCRIBE": ("consume",),
    "TRIM_TOPIC": ("consume",),
    "CLEAR_BACKLOG": ("consume",),
    "PACKAGES": ("packages",),
}
# TopicOperations that the grant `produce` or `consume` allows
PRODUCING: Final = frozenset({"LOOKUP", "GET_STATS", "GET_METADATA", "PRODUCE"})
CONSUMING: Final = frozenset(
    {
        "LOOKUP",
        "GET_STATS",
        "GET_METADATA",
        "GET_SUBSCRIPTIONS",
        "CONSUME",
        "SUBSCRIBE",
        "UNSUBSCRIBE",
        "SKIP",
        "EXPIRE_MESSAGES",
        "PEEK_MESSAGES",
        "RESET_CURSOR",
        "GET_BACKLOG_SIZE",
        "SET_REPLICATED_SUBSCRIPTION_STATUS",
        "GET_REPLICATED_SUBSCRIPTION_STATUS",
    }
)
OF_BROKER: Final = (ObjectKind.SUPERUSER, ObjectKind.CLUSTER, ObjectKind.CLUSTER_POLICY, ObjectKind.BROKER)


class TenantNotFound(Exception):
    """Error for a missing tenant. Pulsar raises it before it reads grants, except for a superuser."""


class WrongSubscriptionName(Exception):
    """Error for a subscription that does not begin with the role (subscription_auth_mode Prefix), in Pulsar's words."""

    def __init__(self, role: str | None, topic: TopicName) -> None:
        super().__init__(
            "Failed to create consumer - The subscription name needs to be prefixed by the authentication role, "
            f"like {role}-xxxx for topic: {topic}"
        )


@dataclass(frozen=True, slots=True)
class OperationTarget:
    """The object of an operation, with as many names as the kind of operation needs."""

    tenant: str = ""
    namespace: NamespaceName | None = None
    topic: TopicName | None = None
    subscription: str = ""


def of_topic(topic: TopicName, subscription: str = "") -> OperationTarget:
    """Return a topic as a target. A segment has the grants of its scalable topic."""
    if topic.is_segment:
        topic = SegmentName.of(topic).parent
    return OperationTarget(topic.tenant, topic.namespace_name, topic, subscription)


def of_namespace(namespace: NamespaceName) -> OperationTarget:
    return OperationTarget(namespace.tenant, namespace)


class Authorization:
    """Decide by the grants that the metadata holds at that moment."""

    def __init__(self, config: Config, metadata: Metadata, *, as_released: bool = False) -> None:
        """Read the roles of `config`. With `as_released`, require no permission where Pulsar 4.2.4 requires none."""
        self._metadata = metadata
        self._config = config  # superUserRoles may change while the broker runs
        self._proxies = config.proxyRoles
        self._wildcards = config.authorizationAllowWildcardsMatching
        self._as_released = as_released

    def is_superuser(self, role: str | None) -> bool:
        return role is not None and role in self._config.superUserRoles

    def is_proxy(self, role: str | None) -> bool:
        return role is not None and role in self._proxies

    def is_valid(self, principal: Principal, *, equal: bool = True) -> bool:
        """Return whether the proved role may speak for the original principal.

        A proxy must name an original principal, and no other proxy. Other roles may name only themselves, and only if
        `equal`.
        """
        original = (principal.original or "").strip()
        if self.is_proxy(principal.role):
            return bool(original) and not self.is_proxy(principal.original)
        return not original or (equal and principal.original == principal.role)

    def allows(self, principal: Principal, needs: Needs, target: OperationTarget) -> bool:
        """Return whether the principal may do the operation.

        Raise `TenantNotFound` for a missing tenant, and `WrongSubscriptionName` for a subscription without the role's
        prefix.
        """
        if needs.kind is ObjectKind.ANYBODY or (needs.unasked and self._as_released):
            return True
        if not self.is_valid(principal):
            return False
        if not self.is_proxy(principal.role):
            return self.allows_role(principal.role, needs, target)
        return all(self.allows_role(role, needs, target) for role in (principal.role, principal.original))

    def allows_role(self, role: str | None, needs: Needs, target: OperationTarget) -> bool:
        """Return whether one role may do the operation. Raise as `allows` does."""
        if self.is_superuser(role):
            return True
        if needs.kind in OF_BROKER:
            return False
        if self._is_tenant_admin(role, target.tenant):
            return True
        if needs.kind is ObjectKind.NAMESPACE and target.namespace is not None:
            grants = self._grants(target.namespace)
            return any(grants.on_namespace(role, action) for action in NAMESPACE_ACTIONS.get(needs.operation, ()))
        if needs.kind is ObjectKind.TOPIC and target.topic is not None:
            return self._allows_topic(role, needs.operation, target.topic, target.subscription)
        return False

    def _is_tenant_admin(self, role: str | None, tenant: str) -> bool:
        info = self._metadata.tenants.get(tenant)
        if info is None:
            raise TenantNotFound("Tenant does not exist")
        return role is not None and role in (info.get("adminRoles") or ())

    def _grants(self, namespace: NamespaceName) -> Grants:
        return Grants(self._metadata.namespaces.get(str(namespace)), wildcards=self._wildcards)

    def _allows_topic(self, role: str | None, operation: str, topic: TopicName, subscription: str) -> bool:
        grants = self._grants(topic.namespace_name)
        if operation in PRODUCING and grants.on_topic(topic, role, "produce"):
            return True
        if operation not in CONSUMING:
            return False
        if subscription.strip():
            roles = grants.roles_of_subscription(subscription)
            if roles and role not in roles:
                return False
            if grants.subscriptions_have_prefix and not (role and subscription.startswith(role)):
                raise WrongSubscriptionName(role, topic)
        return grants.on_topic(topic, role, "consume")
