"""What a command or a route asks of a role, in the names of Pulsar's own checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto


class Kind(Enum):
    """What the operation is about, which decides who may do it."""

    ANYBODY = auto()  # also without credentials
    SUPERUSER = auto()
    CLUSTER = auto()
    CLUSTER_POLICY = auto()
    BROKER = auto()
    TENANT = auto()  # superusers, and of an existing tenant its admins
    TENANT_ADMIN = auto()  # admins of the tenant; grants are given by them
    NAMESPACE = auto()
    NAMESPACE_POLICY = auto()
    TOPIC = auto()
    TOPIC_POLICY = auto()


@dataclass(frozen=True, slots=True)
class Needs:
    """An operation by Pulsar's name (GET_STATS, SKIP, READ); of policies also which one (RETENTION)."""

    kind: Kind
    operation: str = ""
    policy: str = ""
    forbidden: bool = field(default=False, compare=False)  # 403 by a PIP, where Pulsar's own answer is 401
    unasked: bool = field(default=False, compare=False)  # 4.2.4 lets everybody do it; profiles decide

    def __str__(self) -> str:
        words = (self.kind.name.lower().replace("_", " "), self.operation, self.policy)
        return " ".join(word for word in words if word)


ANYBODY = Needs(Kind.ANYBODY)
SUPERUSER = Needs(Kind.SUPERUSER)
TENANT_ADMIN = Needs(Kind.TENANT_ADMIN)


def cluster_operation(operation: str) -> Needs:
    """ClusterOperation, by its name."""
    return Needs(Kind.CLUSTER, operation)


def broker_operation(operation: str) -> Needs:
    """BrokerOperation, by its name."""
    return Needs(Kind.BROKER, operation)


def tenant_operation(operation: str) -> Needs:
    """TenantOperation, by its name."""
    return Needs(Kind.TENANT, operation)


def namespace_operation(operation: str) -> Needs:
    """NamespaceOperation, by its name."""
    return Needs(Kind.NAMESPACE, operation)


def cluster_policy(policy: str, *, write: bool) -> Needs:
    """A PolicyName of a cluster, to read or to write."""
    return Needs(Kind.CLUSTER_POLICY, "WRITE" if write else "READ", policy)


def topic_operation(operation: str, *, forbidden: bool = False, unasked: bool = False) -> Needs:
    """TopicOperation, by its name. `forbidden`: a PIP says 403 to who may not, where Pulsar answers 401. `unasked`:
    Pulsar 4.2.4 asks for nothing there."""
    return Needs(Kind.TOPIC, operation, forbidden=forbidden, unasked=unasked)


def namespace_policy(policy: str, *, write: bool) -> Needs:
    """A PolicyName of a namespace, to read or to write."""
    return Needs(Kind.NAMESPACE_POLICY, "WRITE" if write else "READ", policy)


def topic_policy(policy: str, *, write: bool) -> Needs:
    """A PolicyName of a topic, to read or to write."""
    return Needs(Kind.TOPIC_POLICY, "WRITE" if write else "READ", policy)
