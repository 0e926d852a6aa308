"""What it takes to declare a policy, and what a namespace's and a topic's have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pulsarium.broker.admin.policies.values import Kind
from pulsarium.broker.auth.needs import Needs, namespace_policy, topic_policy
from pulsarium.broker.config.keys import Config
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.reply import Reply, done, json_reply, nothing
from pulsarium.broker.model.policy.policies import Policies

Json = Mapping[str, Any]
Check = Callable[[Call, Json, Any], None]  # the call, what else is set there, the new value; raises AdminError

MISSING = "Namespace does not exist"
POLICIES_MISSING = "Namespace policies does not exist"


def anything(call: Call, kept: Json, value: Any) -> None:
    """No value is refused."""


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy: where it is kept, where it is found, who may see and set it, and what it takes."""

    name: str  # in the kept JSON, of namespaces and topics alike
    word: str  # the last part of its path
    right: str  # Pulsar's PolicyName
    about: str
    kind: Kind
    check: Check = anything
    unset: Reply = field(default_factory=nothing)  # what GET answers then
    methods: tuple[str, ...] = ("GET", "POST", "DELETE")
    read: Callable[[Call], Any] | None = None  # instead of the body
    removed: Any = None  # what is kept after a removal
    per_cluster: bool = False  # kept by cluster, and REST is about this one

    def read_value(self, call: Call) -> Any:
        """The value that a call sets, None for none."""
        return self.kind.read(call) if self.read is None else self.read(call)

    def value_in(self, call: Call, kept: Json) -> Any:
        """What is set, None for nothing."""
        value = kept.get(self.name)
        return value.get(call.broker.metadata.cluster) if self.per_cluster and value is not None else value

    def shown(self, call: Call, kept: Json) -> Reply:
        """What is set, as GET answers it."""
        value = self.value_in(call, kept)
        return self.unset if value is None else json_reply(value)

    def changed(self, call: Call, kept: Json, value: Any) -> dict[str, Any]:
        """What is kept once the policy is set; None takes it away."""
        if self.per_cluster:
            value = with_value(kept.get(self.name) or {}, call.broker.metadata.cluster, value) or None
        return with_value(kept, self.name, self.removed if value is None else value)


@dataclass(frozen=True, slots=True)
class NamespacePolicy(Policy):
    """A policy of a namespace. Which words a missing one gets differs from policy to policy."""

    missing: tuple[int, str] = (404, MISSING)  # for who sets it
    missing_for_get: str = MISSING
    answer: Reply = field(default_factory=done)  # for who set it
    guard: Needs | None = None  # of writing, where it is not `right`

    def needs(self, *, write: bool) -> Needs:
        """What a role must be allowed."""
        return self.guard if self.guard is not None and write else namespace_policy(self.right, write=write)


@dataclass(frozen=True, slots=True)
class TopicPolicy(Policy):
    """A policy of a topic.

    What holds for the topic, from wherever it is set, is told by `applied`; where Pulsar tells the first value that is
    set, or the broker does not heed the policy, by `default`, which is the broker's own value.
    """

    applied: Callable[[Policies], Any] | None = None
    default: Callable[[Config], Any] | None = None
    keeps_at_null: bool = False  # no value changes nothing
    is_local: bool = False  # there is none for all clusters: isGlobal is not heeded
    guard: Needs | None = None

    def needs(self, *, write: bool) -> Needs:
        """What a role must be allowed."""
        return topic_policy(self.right, write=write) if self.guard is None else self.guard

    @property
    def has_applied(self) -> bool:
        """Whether REST tells what holds."""
        return self.applied is not None or self.default is not None

    def in_force(self, call: Call, kept: Json, namespace: Json) -> Any:
        """The first value that is set: of the topic, its namespace or the broker, None for nothing."""
        for found in (kept, namespace):
            value = self.value_in(call, found)
            if value is not None:
                return value
        return None if self.default is None else self.default(call.broker.config)


def with_value(kept: Json, name: str, value: Any) -> dict[str, Any]:
    """The same with one value; without it where that is None."""
    return {field: each for field, each in {**kept, name: value}.items() if each is not None}


def named(handler: Callable[[Call], Reply], name: str, about: str) -> Callable[[Call], Reply]:
    """A handler made from a table, as pages and tests know it."""
    handler.__name__ = handler.__qualname__ = name
    handler.__doc__ = about
    return handler
