"""What it takes to declare a policy, and what a namespace's and a topic's have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pulsarium.broker.admin.call import Call
from pulsarium.broker.admin.policies.values import Kind
from pulsarium.broker.admin.reply import Reply, json_reply, nothing

Json = Mapping[str, Any]
Check = Callable[[Call, Json, Any], None]  # the call, what else is set there, the new value; raises AdminError


def anything(call: Call, kept: Json, value: Any) -> None:
    """No value is refused."""


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy: where it is kept, where it is found, and what it takes."""

    name: str  # in the kept JSON, of namespaces and topics alike
    word: str  # the last part of its path
    about: str
    kind: Kind
    check: Check = anything
    unset: Reply = field(default_factory=nothing)  # what GET answers then
    methods: tuple[str, ...] = ("GET", "POST", "DELETE")
    read: Callable[[Call], Any] | None = None  # instead of the body
    per_cluster: bool = False  # kept by cluster, and REST is about this one

    def read_value(self, call: Call) -> Any:
        """The value that a call sets, None for none."""
        return self.kind.read(call) if self.read is None else self.read(call)

    def shown(self, call: Call, kept: Json) -> Reply:
        """What is set."""
        value = kept.get(self.name)
        if self.per_cluster and value is not None:
            value = value.get(call.broker.metadata.cluster)
        return self.unset if value is None else json_reply(value)

    def changed(self, call: Call, kept: Json, value: Any) -> dict[str, Any]:
        """What is kept once the policy is set; None takes it away."""
        if self.per_cluster:
            value = with_value(kept.get(self.name) or {}, call.broker.metadata.cluster, value) or None
        return with_value(kept, self.name, value)


def with_value(kept: Json, name: str, value: Any) -> dict[str, Any]:
    """The same with one value; without it where that is None."""
    return {field: each for field, each in {**kept, name: value}.items() if each is not None}


def named(handler: Callable[[Call], Reply], name: str, about: str) -> Callable[[Call], Reply]:
    """A handler made from a table, as pages and tests know it."""
    handler.__name__ = handler.__qualname__ = name
    handler.__doc__ = about
    return handler
