"""Who may do what."""

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
    """Nothing is kept."""

    def store(self, path: str, value: bytes | None) -> None: ...

    def after_commit(self, done: Done) -> None: ...


def authorization(*, policies: dict[str, Any] | None = None, **keys: Any) -> Authorization:
    """Of a broker with the tenant ta, whose admin is tadmin, and its namespace ns."""
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


@pytest.mark.parametrize("needs", EVERYTHING, ids=str)
def test_superusers_may_everything_and_nobody_nothing(needs: Needs) -> None:
    found = authorization()
    assert may(found, "admin", needs)
    assert not may(found, "user", needs)
    assert not may(found, None, needs)


def test_superusers_may_change_while_the_broker_runs() -> None:
    """superUserRoles is a dynamic setting."""
    config, metadata = by_token(), Metadata(Nowhere(), "standalone")
    found, dynamic = Authorization(config, metadata), DynamicSettings(config, metadata.records)
    dynamic.put("superUserRoles", "other")
    assert (found.is_superuser("admin"), found.is_superuser("other")) == (False, True)
    dynamic.forget("superUserRoles")
    assert (found.is_superuser("admin"), found.is_superuser("other")) == (True, False)


def test_what_anybody_may() -> None:
    assert may(authorization(), None, ANYBODY)


@pytest.mark.parametrize("needs", EVERYTHING, ids=str)
def test_admins_of_a_tenant_may_what_is_about_it(needs: Needs) -> None:
    of_the_broker = needs in (EVERYTHING[0], EVERYTHING[2], EVERYTHING[3])
    assert may(authorization(), "tadmin", needs) is not of_the_broker


# operation -> whether who may produce, and who may consume, may do it
TOPIC_OPERATIONS = {
    "LOOKUP": (True, True),
    "GET_STATS": (True, True),
    "GET_METADATA": (True, True),
    "PRODUCE": (True, False),
    "CONSUME": (False, True),
    "GET_SUBSCRIPTIONS": (False, True),
    "SUBSCRIBE": (False, True),
    "UNSUBSCRIBE": (False, True),
    "SKIP": (False, True),
    "EXPIRE_MESSAGES": (False, True),
    "PEEK_MESSAGES": (False, True),
    "RESET_CURSOR": (False, True),
    "GET_BACKLOG_SIZE": (False, True),
    "SET_REPLICATED_SUBSCRIPTION_STATUS": (False, True),
    "GET_REPLICATED_SUBSCRIPTION_STATUS": (False, True),
    "TERMINATE": (False, False),
    "COMPACT": (False, False),
    "OFFLOAD": (False, False),
    "UNLOAD": (False, False),
    "TRIM_TOPIC": (False, False),
    "DELETE_METADATA": (False, False),
    "UPDATE_METADATA": (False, False),
}
NAMESPACE_OPERATIONS = {
    "GET_TOPICS": (True, True),
    "GET_BUNDLE": (True, True),
    "UNSUBSCRIBE": (False, True),
    "CLEAR_BACKLOG": (False, True),
    "CREATE_TOPIC": (False, False),
    "DELETE_TOPIC": (False, False),
    "DELETE_BUNDLE": (False, False),
    "GRANT_PERMISSION": (False, False),
}
BOTH = granting({"maker": ["produce"], "eater": ["consume"]})


@pytest.mark.parametrize("operation", TOPIC_OPERATIONS)
def test_what_grants_are_good_for_with_topics(operation: str) -> None:
    found, needs = authorization(policies=BOTH), topic_operation(operation)
    assert (may(found, "maker", needs), may(found, "eater", needs)) == TOPIC_OPERATIONS[operation]


@pytest.mark.parametrize("operation", NAMESPACE_OPERATIONS)
def test_what_grants_are_good_for_with_namespaces(operation: str) -> None:
    found, needs = authorization(policies=BOTH), namespace_operation(operation)
    allowed = tuple(found.allows(Principal(role), needs, of_namespace(NAMESPACE)) for role in ("maker", "eater"))
    assert allowed == NAMESPACE_OPERATIONS[operation]


def test_a_grant_on_a_topic_is_for_that_topic_and_its_partitions() -> None:
    found = authorization(policies=granting(destination_auth={str(TOPIC): {"maker": ["produce"]}}))
    assert may(found, "maker", PRODUCE)
    assert may(found, "maker", PRODUCE, topic=TOPIC.partition(3))
    assert not may(found, "maker", PRODUCE, topic=TopicName.parse("persistent://ta/ns/other"))
    assert not may(found, "maker", PRODUCE, topic=TopicName.parse("persistent://ta/ns/-partition-0"))
    assert not may(found, "maker", CONSUME)
    assert not found.allows(Principal("maker"), namespace_operation("GET_TOPICS"), of_namespace(NAMESPACE))


@pytest.mark.parametrize("actions", [None, [], [None]])
def test_grants_of_nothing(actions: Any) -> None:
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
def test_wildcards_where_they_are_allowed(pattern: str, role: str, matches: bool) -> None:
    for policies in (granting({pattern: ["produce"]}), granting(destination_auth={str(TOPIC): {pattern: ["produce"]}})):
        found = authorization(policies=policies, authorizationAllowWildcardsMatching=True)
        assert may(found, role, PRODUCE) is matches
        assert not may(found, role, CONSUME)
        assert not may(found, None, PRODUCE)
        assert not may(authorization(policies=policies), role, PRODUCE)


def test_roles_of_a_subscription() -> None:
    policies = granting({"one": ["consume"], "two": ["consume"]}, subscription_auth_roles={"s": ["one"], "open": []})
    found = authorization(policies=policies)
    assert may(found, "one", CONSUME, subscription="s")
    assert not may(found, "two", CONSUME, subscription="s")
    assert may(found, "two", CONSUME, subscription="open")
    assert may(found, "two", CONSUME, subscription="other")
    assert may(found, "admin", CONSUME, subscription="s")


def test_names_of_subscriptions_that_begin_with_the_role() -> None:
    policies = {**granting({"one": ["consume"]}), "subscription_auth_mode": "Prefix"}
    found = authorization(policies=policies)
    assert may(found, "one", CONSUME, subscription="one-s")
    assert may(found, "one", topic_operation("LOOKUP"))
    with pytest.raises(WrongSubscriptionName, match="prefixed by the authentication role, like one-xxxx for topic: "):
        may(found, "one", CONSUME, subscription="s")


def test_of_a_tenant_that_there_is_not() -> None:
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
