"""Serve the policies of the table: code that namespaces and topics share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pulsarium.broker.auth.needs import Needs
from pulsarium.broker.jackson.kinds import JavaType
from pulsarium.broker.model.namespace.metadata import GLOBAL
from pulsarium.broker.model.namespace.values import KINDS
from pulsarium.broker.web.http.call import Call, number_in
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply, nothing
from pulsarium.proto.topic_name import TopicName
from pulsarium.rest.policies import Policy, PolicyPath

Json = Mapping[str, Any]
H = TypeVar("H", bound=Callable[[Call], Any])
Check = Callable[[Call, Json, Any], None]  # the call, the other policies, the new value; raises AdminError

MISSING = "Namespace does not exist"
POLICIES_MISSING = "Namespace policies does not exist"


def anything(call: Call, kept: Json, value: Any) -> None:
    """Accept any value."""


def at_least_0(text: str) -> Check:
    """Return a check that refuses negative numbers with `text`."""

    def check(call: Call, kept: Json, value: Any) -> None:
        if value is not None and value < 0:
            raise AdminError(412, text)

    return check


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """Exceptions of one policy over REST. The error for a missing namespace differs from policy to policy."""

    kind: JavaType | None = None  # where it is not that of the row's type
    check: Check | None = None  # by default, numbers must not be negative
    unset: HttpReply = field(default_factory=nothing)  # the answer of GET without a value
    read: Callable[[Call], Any] | None = None  # reads the value in place of the body
    removed: Any = None  # the value to store after a removal
    guard: Needs | None = None  # for writing, in place of the row's right
    guards_get: bool = False  # reading needs `guard` too
    value_in: Callable[[Json], Any] | None = None  # reads the value from the stored policies, if not by name
    changed: Callable[[Json, Any], dict[str, Any]] | None = None  # returns the policies to store, if not by name
    beside: Callable[[Call, Any], Json] = (
        lambda call, value: {}
    )  # returns other policies that a call for a namespace sets

    missing: tuple[int, str] = (404, MISSING)  # the answer of a setter for a missing namespace
    missing_for_get: str = MISSING
    missing_for_delete: tuple[int, str] | None = None  # where it differs
    answer: HttpReply = field(default_factory=done)  # the answer of a setter for a namespace

    in_force: Callable[[Call, Json, Json], Any] | None = None  # the value in effect for a topic, if not the first set
    keeps_at_null: bool = False  # null changes nothing, for a topic


@dataclass(frozen=True, slots=True)
class PolicyRoutes:
    """A row of the table with its REST calls for namespaces or for topics."""

    row: Policy[Any]
    place: PolicyPath
    methods: tuple[str, ...]
    rule: PolicyRule
    kind: JavaType
    check: Check
    right: Callable[..., Needs]

    def needs(self, *, write: bool) -> Needs:
        """Return the rights that a role needs."""
        if self.rule.guard is not None and (write or self.rule.guards_get):
            return self.rule.guard
        return self.right(self.row.right, write=write)

    @property
    def word(self) -> str:
        """Return the last part of the path."""
        return self.place.word

    @property
    def name(self) -> str:
        """Return the name by which the policy is stored."""
        return self.row.kept

    def read_value(self, call: Call) -> Any:
        """Return the value that a call sets, or None."""
        if self.rule.read is not None:
            return self.rule.read(call)
        if self.place.in_query:
            text = call.query.get(self.word)
            return None if text is None else number_in(text, bits=32)
        return call.read(self.kind)

    def value_in(self, call: Call, kept: Json) -> Any:
        """Return the stored value, or None."""
        if self.rule.value_in is not None:
            return self.rule.value_in(kept)
        value = kept.get(self.name)
        return value.get(call.broker.metadata.cluster) if self.row.per_cluster and value is not None else value

    def shown(self, call: Call, kept: Json) -> HttpReply:
        """Return the answer of GET."""
        value = self.value_in(call, kept)
        return self.rule.unset if value is None else json_reply(value)

    def changed(self, call: Call, kept: Json, value: Any) -> dict[str, Any]:
        """Return the policies to store after a change. The value None removes the policy."""
        if self.row.per_cluster:
            value = with_value(kept.get(self.name) or {}, call.broker.metadata.cluster, value) or None
        if self.rule.changed is not None:
            return self.rule.changed(kept, value)
        return with_value(kept, self.name, self.rule.removed if value is None else value)


def taken(
    row: Policy[Any],
    place: PolicyPath | None,
    rule: PolicyRule,
    right: Callable[..., Needs],
    kind: JavaType | None = None,
) -> Iterator[PolicyRoutes]:
    """Yield the REST calls of a row at `place`, of namespaces or of topics.

    `right` makes the Needs of the row's permission. `kind` replaces the kind that the row's type has by default.
    """
    if place is None or not place.setting:
        return
    kind = kind or rule.kind or KINDS[row.json]
    checked = rule.check or (at_least_0(f"{place.word} must be 0 or more") if row.json is int else anything)
    removal = (place.removal,) if place.removal not in ("", place.setting) and not place.removed_at else ()
    yield PolicyRoutes(row, place, ("GET", place.setting, *removal), rule, kind, checked, right)
    if place.removed_at:
        yield PolicyRoutes(row, PolicyPath(place.removed_at), ("DELETE",), rule, kind, checked, right)


def with_value(kept: Json, name: str, value: Any) -> dict[str, Any]:
    """Return a copy with one value set, or removed if it is None."""
    return {field: each for field, each in {**kept, name: value}.items() if each is not None}


def named(handler: H, name: str, about: str) -> H:
    """Return a handler made from a table, with a name and a docstring for pages and tests."""
    handler.__name__ = handler.__qualname__ = name
    handler.__doc__ = about
    return handler


def topic_of(call: Call) -> TopicName:
    """Return the topic of the path.

    Raise `AdminError` for a missing topic, and for a partition, which has no policies.
    """
    if not call.broker.config.takes_topic_policies:
        raise AdminError(405, "Topic level policies is disabled, to enable the topic level policy and retry.")
    name = call.topic
    if name.is_partition:
        raise AdminError(412, "Not allowed to set/get topic policy for a partition")
    if not (call.broker.topics.exists(name) or call.broker.metadata.partitions_of(name)):
        raise AdminError(404, f"Topic {name} not found")
    return name


def kept_of(call: Call, name: TopicName, *, is_local: bool = False) -> dict[str, Any]:
    """Return the stored policies of a topic: local ones, or with ?isGlobal=true those for all clusters.

    With `is_local`, ignore isGlobal.
    """
    kept = call.broker.metadata.topic_policies.get(str(name), {})
    found: dict[str, Any] = kept.get(GLOBAL, {}) if call.flag("isGlobal") and not is_local else kept
    return found


def keep(call: Call, name: TopicName, changed: Json, *, is_local: bool = False) -> HttpReply:
    """Store the local policies of a topic, or with ?isGlobal=true those for all clusters.

    With `is_local`, ignore isGlobal.
    """
    metadata = call.broker.metadata
    policies = {field: value for field, value in changed.items() if value != {}}
    if call.flag("isGlobal") and not is_local:
        policies = with_value(metadata.topic_policies.get(str(name), {}), GLOBAL, policies or None)
    metadata.put_topic_policies(name, policies)
    return done()
