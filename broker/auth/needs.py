"""Declare which rights a command or a route needs, in the names of Pulsar's own checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto


class ObjectKind(Enum):
    """The kind of object of an operation, which decides which roles may do the operation."""

    ANYBODY = auto()  # also without credentials
    SUPERUSER = auto()
    CLUSTER = auto()
    CLUSTER_POLICY = auto()
    BROKER = auto()
    TENANT = auto()  # superusers, and admins of an existing tenant
    TENANT_ADMIN = auto()  # admins of the tenant, who give grants
    NAMESPACE = auto()
    NAMESPACE_POLICY = auto()
    TOPIC = auto()
    TOPIC_POLICY = auto()


@dataclass(frozen=True, slots=True)
class Needs:
    """An operation by Pulsar's name (GET_STATS, SKIP, READ). For policies, `policy` is the PolicyName (RETENTION)."""

    kind: ObjectKind
    operation: str = ""
    policy: str = ""
    forbidden: bool = field(default=False, compare=False)  # answer 403 as a PIP says, not Pulsar's 401
    unasked: bool = field(default=False, compare=False)  # Pulsar 4.2.4 lets every role do it; profiles decide

    def __str__(self) -> str:
        words = (self.kind.name.lower().replace("_", " "), self.operation, self.policy)
        return " ".join(word for word in words if word)


ANYBODY = Needs(ObjectKind.ANYBODY)
SUPERUSER = Needs(ObjectKind.SUPERUSER)
TENANT_ADMIN = Needs(ObjectKind.TENANT_ADMIN)


def cluster_operation(operation: str) -> Needs:
    """Require a ClusterOperation, by its name."""
    return Needs(ObjectKind.CLUSTER, operation)


def broker_operation(operation: str) -> Needs:
    """Require a BrokerOperation, by its name."""
    return Needs(ObjectKind.BROKER, operation)


def tenant_operation(operation: str) -> Needs:
    """Require a TenantOperation, by its name."""
    return Needs(ObjectKind.TENANT, operation)


def namespace_operation(operation: str) -> Needs:
    """Require a NamespaceOperation, by its name."""
    return Needs(ObjectKind.NAMESPACE, operation)


def cluster_policy(policy: str, *, write: bool) -> Needs:
    """Require access to a PolicyName of a cluster."""
    return Needs(ObjectKind.CLUSTER_POLICY, "WRITE" if write else "READ", policy)


def topic_operation(operation: str, *, forbidden: bool = False, unasked: bool = False) -> Needs:
    """Require a TopicOperation, by its name.

    With `forbidden`, refuse with 403 as a PIP says, not with Pulsar's 401. `unasked`: Pulsar 4.2.4 requires none.
    """
    return Needs(ObjectKind.TOPIC, operation, forbidden=forbidden, unasked=unasked)


def namespace_policy(policy: str, *, write: bool) -> Needs:
    """Require access to a PolicyName of a namespace."""
    return Needs(ObjectKind.NAMESPACE_POLICY, "WRITE" if write else "READ", policy)


def topic_policy(policy: str, *, write: bool) -> Needs:
    """Require access to a PolicyName of a topic."""
    return Needs(ObjectKind.TOPIC_POLICY, "WRITE" if write else "READ", policy)
