"""How REST takes the policies of the table: what namespaces' and topics' have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pulsarium.broker.auth.needs import Needs
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.reply import Reply, done, json_reply, nothing
from pulsarium.broker.http.values import KINDS, Kind
from pulsarium.broker.model.namespace.metadata import GLOBAL
from pulsarium.proto.topic_name import TopicName
from pulsarium.rest.policies import Place, Policy

Json = Mapping[str, Any]
H = TypeVar("H", bound=Callable[[Call], Any])
Check = Callable[[Call, Json, Any], None]  # the call, what else is set there, the new value; raises AdminError

MISSING = "Namespace does not exist"
POLICIES_MISSING = "Namespace policies does not exist"


def anything(call: Call, kept: Json, value: Any) -> None:
    """No value is refused."""


def at_least_0(text: str) -> Check:
    """Refuse negative numbers."""

    def check(call: Call, kept: Json, value: Any) -> None:
        if value is not None and value < 0:
            raise AdminError(412, text)

    return check


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What is particular about a policy. Which words a missing namespace gets differs from policy to policy."""

    kind: Kind | None = None  # where it is not the one of the row's type
    check: Check | None = None  # the same; numbers are not negative
    unset: Reply = field(default_factory=nothing)  # what GET answers then
    read: Callable[[Call], Any] | None = None  # instead of the body
    removed: Any = None  # what is kept after a removal
    guard: Needs | None = None  # of writing, where it is not the row's right
    guards_get: bool = False  # reading needs the same
    value_in: Callable[[Json], Any] | None = None  # what is set, where it is not kept by its name alone
    changed: Callable[[Json, Any], dict[str, Any]] | None = None  # what is kept then, for the same reason

    missing: tuple[int, str] = (404, MISSING)  # for who sets one of a namespace
    missing_for_get: str = MISSING
    missing_for_delete: tuple[int, str] | None = None  # where it differs
    answer: Reply = field(default_factory=done)  # for who set one of a namespace

    in_force: Callable[[Call, Json, Json], Any] | None = None  # what holds for a topic, where it is not the first set
    keeps_at_null: bool = False  # no value changes nothing, of a topic


@dataclass(frozen=True, slots=True)
class Taken:
    """A row as REST takes it in one place."""

    row: Policy[Any]
    place: Place
    methods: tuple[str, ...]
    rule: Rule
    kind: Kind
    check: Check
    right: Callable[..., Needs]

    def needs(self, *, write: bool) -> Needs:
        """Return what a role must be allowed."""
        if self.rule.guard is not None and (write or self.rule.guards_get):
            return self.rule.guard
        return self.right(self.row.right, write=write)

    @property
    def word(self) -> str:
        """Return the last part of the path."""
        return self.place.word

    @property
    def name(self) -> str:
        """Return the name by which the policy is kept."""
        return self.row.kept

    def read_value(self, call: Call) -> Any:
        """Return the value that a call sets, None for none."""
        return self.kind.read(call) if self.rule.read is None else self.rule.read(call)

    def value_in(self, call: Call, kept: Json) -> Any:
        """Return what is set, None for nothing."""
        if self.rule.value_in is not None:
            return self.rule.value_in(kept)
        value = kept.get(self.name)
        return value.get(call.broker.metadata.cluster) if self.row.per_cluster and value is not None else value

    def shown(self, call: Call, kept: Json) -> Reply:
        """Return what is set, as GET answers it."""
        value = self.value_in(call, kept)
        return self.rule.unset if value is None else json_reply(value)

    def changed(self, call: Call, kept: Json, value: Any) -> dict[str, Any]:
        """Return what is kept once the policy is set; None takes it away."""
        if self.row.per_cluster:
            value = with_value(kept.get(self.name) or {}, call.broker.metadata.cluster, value) or None
        if self.rule.changed is not None:
            return self.rule.changed(kept, value)
        return with_value(kept, self.name, self.rule.removed if value is None else value)


def taken(
    row: Policy[Any], place: Place | None, rule: Rule, right: Callable[..., Needs], kind: Kind | None = None
) -> Iterator[Taken]:
    """Yield what REST has of a row there; `right` makes Needs of the row's, `kind` is another than its type says."""
    if place is None or not place.setting:
        return
    kind = kind or rule.kind or KINDS[row.json]
    checked = rule.check or (at_least_0(f"{place.word} must be 0 or more") if row.json is int else anything)
    removal = (place.removal,) if place.removal not in ("", place.setting) and not place.removed_at else ()
    yield Taken(row, place, ("GET", place.setting, *removal), rule, kind, checked, right)
    if place.removed_at:
        yield Taken(row, Place(place.removed_at), ("DELETE",), rule, kind, checked, right)


def with_value(kept: Json, name: str, value: Any) -> dict[str, Any]:
    """Return the same with one value; without it where that is None."""
    return {field: each for field, each in {**kept, name: value}.items() if each is not None}


def named(handler: H, name: str, about: str) -> H:
    """Return a handler made from a table, as pages and tests know it."""
    handler.__name__ = handler.__qualname__ = name
    handler.__doc__ = about
    return handler


def topic_of(call: Call) -> TopicName:
    """The topic of the path, which must exist; partitions have no policies of their own."""
    if not call.broker.config.takes_topic_policies:
        raise AdminError(405, "Topic level policies is disabled, to enable the topic level policy and retry.")
    name = call.topic
    if name.is_partition:
        raise AdminError(412, "Not allowed to set/get topic policy for a partition")
    if not (call.broker.topics.exists(name) or call.broker.metadata.partitions_of(name)):
        raise AdminError(404, f"Topic {name} not found")
    return name


def kept_of(call: Call, name: TopicName, *, is_local: bool = False) -> dict[str, Any]:
    """What is set for a topic, here or, unless `is_local`, for all clusters."""
    kept = call.broker.metadata.topic_policies.get(str(name), {})
    found: dict[str, Any] = kept.get(GLOBAL, {}) if call.flag("isGlobal") and not is_local else kept
    return found


def keep(call: Call, name: TopicName, changed: Json, *, is_local: bool = False) -> Reply:
    """Keep it there."""
    metadata = call.broker.metadata
    policies = {field: value for field, value in changed.items() if value != {}}
    if call.flag("isGlobal") and not is_local:
        policies = with_value(metadata.topic_policies.get(str(name), {}), GLOBAL, policies or None)
    metadata.put_topic_policies(name, policies)
    return done()
