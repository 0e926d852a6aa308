"""Authorization of roles by superusers, tenant admins and grants."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.auth.authorization import (
    Authorization,
    TenantNotFound,
    WrongSubscriptionName,
    of_namespace,
    of_topic,
)
from pulsarium.broker.auth.identity import Principal
from pulsarium.broker.auth.needs import (
    ANYBODY,
    SUPERUSER,
    TENANT_ADMIN,
    Needs,
    broker_operation,
    cluster_operation,
    namespace_operation,
    namespace_policy,
    tenant_operation,
    topic_operation,
    topic_policy,
)
from pulsarium.broker.config.dynamic import DynamicSettings
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.storage.interface import Done
from pulsarium.proto.topic_name import NamespaceName, TopicName
from tests.broker.auth.secured import by_token

NAMESPACE = NamespaceName.parse("ta/ns")
TOPIC = TopicName.parse("persistent://ta/ns/t")


class Nowhere:
    """A store that keeps nothing."""

    def store(self, path: str, value: bytes | None) -> None: ...

    def after_commit(self, done: Done) -> None: ...


def authorization(*, policies: dict[str, Any] | None = None, **keys: Any) -> Authorization:
    """Return the authorization of a broker with tenant ta, whose admin is tadmin, and its namespace ns."""
    metadata = Metadata(Nowhere(), "standalone")
    metadata.put_tenant("ta", {"adminRoles": ["tadmin", "proxy"], "allowedClusters": ["standalone"]})
    metadata.put_namespace("ta/ns", policies or {})
    return Authorization(by_token(**keys), metadata)


def granting(namespace: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    return {"auth_policies": {"namespace_auth": namespace or {}, **others}}


def may(
    found: Authorization, role: str | None, needs: Needs, *, topic: TopicName = TOPIC, subscription: str = ""
) -> bool:
    return found.allows(Principal(role), needs, of_topic(topic, subscription))


PRODUCE, CONSUME = topic_operation("PRODUCE"), topic_operation("CONSUME")
EVERYTHING = [
    SUPERUSER,
    TENANT_ADMIN,
    cluster_operation("GET_CLUSTER"),
    broker_operation("LIST_BROKERS"),
    tenant_operation("LIST_NAMESPACES"),
    namespace_operation("CREATE_TOPIC"),
    namespace_policy("RETENTION", write=True),
    PRODUCE,
    topic_operation("TERMINATE"),
    topic_policy("RETENTION", write=False),
]


def test_superusers_may_everything_and_nobody_nothing() -> None:
    found = authorization()
    for role, allowed in (("admin", EVERYTHING), ("user", []), (None, [])):
        assert [needs for needs in EVERYTHING if may(found, role, needs)] == allowed


def test_superusers_may_change_while_the_broker_runs() -> None:
    """The setting superUserRoles is dynamic."""
    metadata = Metadata(Nowhere(), "standalone")
    dynamic = DynamicSettings(by_token(), metadata.records)
    found = Authorization(dynamic.config, metadata)
    dynamic.put("superUserRoles", "other")
    assert (found.is_superuser("admin"), found.is_superuser("other")) == (False, True)
    dynamic.forget("superUserRoles")
    assert (found.is_superuser("admin"), found.is_superuser("other")) == (True, False)


def test_anybody_may_what_needs_nothing() -> None:
    assert may(authorization(), None, ANYBODY)


def test_admins_of_a_tenant_may_what_is_about_it() -> None:
    of_the_broker = [EVERYTHING[0], EVERYTHING[2], EVERYTHING[3]]
    found = authorization()
    assert [needs for needs in EVERYTHING if not may(found, "tadmin", needs)] == of_the_broker


BOTH = granting({"maker": ["produce"], "eater": ["consume"]})
# Roles of BOTH -> the operations that their grants allow.
OF_TOPICS = {
    "maker eater": "LOOKUP GET_STATS GET_METADATA",
    "maker": "PRODUCE",
    "eater": "CONSUME GET_SUBSCRIPTIONS SUBSCRIBE UNSUBSCRIBE SKIP EXPIRE_MESSAGES PEEK_MESSAGES RESET_CURSOR "
    "GET_BACKLOG_SIZE SET_REPLICATED_SUBSCRIPTION_STATUS GET_REPLICATED_SUBSCRIPTION_STATUS",
    "": "TERMINATE COMPACT OFFLOAD UNLOAD TRIM_TOPIC DELETE_METADATA UPDATE_METADATA",
}
OF_NAMESPACES = {
    "maker eater": "GET_TOPICS GET_BUNDLE",
    "eater": "UNSUBSCRIBE CLEAR_BACKLOG",
    "": "CREATE_TOPIC DELETE_TOPIC DELETE_BUNDLE GRANT_PERMISSION",
}


@pytest.mark.parametrize(
    ("table", "needs_of", "target"),
    [(OF_TOPICS, topic_operation, of_topic(TOPIC)), (OF_NAMESPACES, namespace_operation, of_namespace(NAMESPACE))],
    ids=["topics", "namespaces"],
)
def test_a_grant_is_good_for_some_operations(table: dict[str, str], needs_of: Any, target: Any) -> None:
    found = authorization(policies=BOTH)
    for allowed, operations in table.items():
        for operation in operations.split():
            needs = needs_of(operation)
            roles = [role for role in ("maker", "eater") if found.allows(Principal(role), needs, target)]
            assert roles == allowed.split(), operation


def test_a_grant_on_a_topic_is_for_that_topic_and_its_partitions() -> None:
    found = authorization(policies=granting(destination_auth={str(TOPIC): {"maker": ["produce"]}}))
    assert may(found, "maker", PRODUCE)
    assert may(found, "maker", PRODUCE, topic=TOPIC.partition(3))
    assert not may(found, "maker", PRODUCE, topic=TopicName.parse("persistent://ta/ns/other"))
    assert not may(found, "maker", PRODUCE, topic=TopicName.parse("persistent://ta/ns/-partition-0"))
    assert not may(found, "maker", CONSUME)
    assert not found.allows(Principal("maker"), namespace_operation("GET_TOPICS"), of_namespace(NAMESPACE))


@pytest.mark.parametrize("actions", [None, [], [None]])
def test_grants_of_nothing_allow_nothing(actions: Any) -> None:
    assert not may(authorization(policies=granting({"maker": actions})), "maker", PRODUCE)


@pytest.mark.parametrize(
    ("pattern", "role", "matches"),
    [
        ("app-*", "app-1", True),
        ("app-*", "app-", True),
        ("app-*", "other", False),
        ("*-app", "my-app", True),
        ("*-app", "my-other", False),
        ("*", "whoever", True),
        ("a*b", "axb", False),
    ],
)
def test_wildcards_match_roles_where_they_are_allowed(pattern: str, role: str, matches: bool) -> None:
    for policies in (granting({pattern: ["produce"]}), granting(destination_auth={str(TOPIC): {pattern: ["produce"]}})):
        found = authorization(policies=policies, authorizationAllowWildcardsMatching=True)
        assert may(found, role, PRODUCE) is matches
        assert not may(found, role, CONSUME)
        assert not may(found, None, PRODUCE)
        assert not may(authorization(policies=policies), role, PRODUCE)


def test_only_roles_of_a_subscription_may_consume_it() -> None:
    policies = granting({"one": ["consume"], "two": ["consume"]}, subscription_auth_roles={"s": ["one"], "open": []})
    found = authorization(policies=policies)
    assert may(found, "one", CONSUME, subscription="s")
    assert not may(found, "two", CONSUME, subscription="s")
    assert may(found, "two", CONSUME, subscription="open")
    assert may(found, "two", CONSUME, subscription="other")
    assert may(found, "admin", CONSUME, subscription="s")


def test_the_prefix_mode_wants_names_with_the_role() -> None:
    policies = {**granting({"one": ["consume"]}), "subscription_auth_mode": "Prefix"}
    found = authorization(policies=policies)
    assert may(found, "one", CONSUME, subscription="one-s")
    assert may(found, "one", topic_operation("LOOKUP"))
    with pytest.raises(WrongSubscriptionName, match="prefixed by the authentication role, like one-xxxx for topic: "):
        may(found, "one", CONSUME, subscription="s")


def test_an_absent_tenant_is_told_to_all_but_superusers() -> None:
    elsewhere = TopicName.parse("persistent://nope/ns/t")
    assert may(authorization(), "admin", PRODUCE, topic=elsewhere)
    with pytest.raises(TenantNotFound, match="Tenant does not exist"):
        may(authorization(), "user", PRODUCE, topic=elsewhere)


@pytest.mark.parametrize(
    ("role", "original", "allowed"),
    [
        ("proxy", "tadmin", True),
        ("proxy", "user", False),
        ("proxy", None, False),
        ("proxy", "proxy", False),
        ("tadmin", None, True),
        ("tadmin", "tadmin", True),
        ("tadmin", "user", False),
        ("user", "tadmin", False),
    ],
)
def test_a_proxy_speaks_for_others_and_both_must_be_allowed(role: str, original: str | None, allowed: bool) -> None:
    principal = Principal(role, original)
    assert authorization().allows(principal, topic_operation("TERMINATE"), of_topic(TOPIC)) is allowed
