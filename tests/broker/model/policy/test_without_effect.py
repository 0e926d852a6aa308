"""Settings without an effect: each setting has an effect that a test sees, or is declared to have none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.config.keys import documented_keys
from pulsarium.broker.model.policy import without_effect
from pulsarium.broker.model.policy.without_effect import FACTS, POLICIES, Notices
from pulsarium.broker.model.scalable.auto_scale import BUCKET_OVERRIDES, OVERRIDES, key_of
from pulsarium.rest import policies as rows
from pulsarium.rest.policies import NAMESPACE_DEFAULTS, Policy
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, TENANTS, TOPICS, Rest
from tests.broker.wire import Bed, Wire

ROOT = Path(__file__).parents[4]
TESTS = ROOT / "tests"
YARDSTICKS = ROOT / "yardsticks"
RATES = "broker/commands/test_dispatch_rate.py"
COMMANDS, UPKEEP = "broker/commands", "broker/model/upkeep"
# The test that sees the effect of a policy, by the stored name of the policy.
EFFECTS: Mapping[str, str] = {
    "auth_policies": "broker/commands/test_authorized.py",
    "backlog_quota_map": f"{UPKEEP}/test_backlog_quota.py::test_producers_are_disconnected_and_refused",
    "bundles": "broker/web/admin/namespace/test_bundles.py::test_unloading_a_bundle_disconnects_only_its_clients",
    "clusterDispatchRate": f"{RATES}::test_the_rate_bounds_the_messages_of_each_second",
    "topicDispatchRate": f"{RATES}::test_the_rate_bounds_the_messages_of_each_second",
    "subscriptionDispatchRate": f"{RATES}::test_subscriptions_share_a_topics_rate_and_have_their_own",
    "clusterSubscribeRate": f"{COMMANDS}/test_limits.py::test_a_namespace_says_how_often_one_may_subscribe",
    "publishMaxMessageRate": f"{COMMANDS}/test_publish_rate.py::test_a_connection_pauses_until_there_are_tokens_again",
    "deduplicationEnabled": f"{COMMANDS}/test_deduplication_kept.py::test_deduplication_can_be_switched_while_in_use",
    "deduplicationSnapshotIntervalSeconds": (
        f"{COMMANDS}/test_deduplication_kept.py::test_a_snapshot_after_so_much_time"
    ),
    "autoTopicCreationOverride": f"{COMMANDS}/test_limits.py::test_a_namespace_may_forbid_topics",
    "autoSubscriptionCreationOverride": f"{COMMANDS}/test_limits.py::test_subscriptions_may_be_made_on_one_topic_only",
    "message_ttl_in_seconds": f"{UPKEEP}/test_expiry.py::test_a_ttl_that_is_set_is_heeded_at_once",
    "subscription_expiration_time_minutes": (
        f"{UPKEEP}/test_unused_subscriptions.py::test_a_namespace_and_a_topic_have_their_own_times"
    ),
    "retention_policies": f"{UPKEEP}/test_trimming.py::test_retention_keeps_what_was_consumed",
    "encryption_required": f"{COMMANDS}/test_producer_limits.py::test_a_namespace_may_require_encryption",
    "delayed_delivery_policies": f"{COMMANDS}/test_producer_limits.py::test_a_delay_may_be_so_long",
    "inactive_topic_policies": f"{UPKEEP}/test_inactivity.py::test_a_policy_may_keep_an_inactive_topic",
    "subscription_auth_mode": "broker/auth/test_authorization.py::test_the_prefix_mode_wants_names_with_the_role",
    "max_producers_per_topic": f"{COMMANDS}/test_limits.py::test_a_full_topic_takes_no_producer_of_any_kind",
    "max_consumers_per_topic": f"{COMMANDS}/test_limits.py::test_a_full_topic_comes_before_everything_else",
    "max_consumers_per_subscription": f"{COMMANDS}/test_limits.py::test_a_full_subscription",
    "max_subscriptions_per_topic": f"{COMMANDS}/test_limits.py::test_a_subscription_beyond_the_maximum_is_refused",
    "max_unacked_messages_per_consumer": (
        "broker/model/dispatch/test_unacked_limits.py::test_a_consumer_is_held_at_the_limit_and_freed_at_half"
    ),
    "max_unacked_messages_per_subscription": (
        "broker/model/dispatch/test_unacked_limits.py::test_all_consumers_of_a_subscription_together"
    ),
    "max_topics_per_namespace": "broker/web/admin/namespace/test_max_topics.py::test_partitions_count_one_by_one",
    "max_message_size": f"{COMMANDS}/test_producer_limits.py::test_a_topic_may_limit_the_size_of_messages",
    "compaction_threshold": "broker/model/compaction/test_compaction.py",
    "schema_auto_update_compatibility_strategy": f"{COMMANDS}/test_schema.py::test_a_producer_that_does_not_fit",
    "schema_compatibility_strategy": f"{COMMANDS}/test_schema.py::test_a_producer_that_does_not_fit",
    "is_allow_auto_update_schema": f"{COMMANDS}/test_schema.py::test_no_new_schemas",
    "schema_validation_enforced": f"{COMMANDS}/test_schema.py::test_producers_must_have_a_schema_where_the_topic_has",
    "subscription_types_enabled": f"{COMMANDS}/test_limits.py::test_types_are_the_topics_or_the_namespaces",
    "resource_group_name": (
        f"{COMMANDS}/test_resource_groups.py::test_topics_of_its_namespaces_share_the_publish_rate"
    ),
    "migrated": "broker/model/topic/test_migration.py::test_a_namespace_may_move_alone",
    "shadowTopics": f"{COMMANDS}/test_shadow_topics.py::test_a_listed_shadow_gets_each_message",
    "entryFilters": "broker/web/admin/policies/test_rules.py::test_no_entry_filter_can_be_set",
    "subscriptionPolicies": f"{RATES}",
}
# Stored fields without an effect on any broker, in Pulsar too.
OF_OPERATORS = {"deleted", "properties"}
# Keys that no test names, with the test that sees their effect.
KEYS_SEEN_BY: Mapping[str, str] = {
    "defaultNumberOfSystemNamespaceBundles": "broker/model/namespace/test_metadata.py",
    "maxConsumerMetadataSize": f"{COMMANDS}/test_subscribe.py::test_metadata_of_a_consumer_may_be_so_large",
    "systemTopicSchemaCompatibilityStrategy": f"{COMMANDS}/test_schema.py::test_the_strategy_of_system_topics",
    "dispatcherReadFailureBackoffMaxTimeInMs": "broker/model/subscription/test_unreadable.py",
}
ONLY_ONE_VALUE = {"authorizationProvider"}  # all other values are refused


@cache
def text_of(path: str) -> str:
    return (TESTS / path).read_text()


def kept_names() -> set[str]:
    """Return the stored names of all policies of namespaces and topics."""
    return {*NAMESPACE_DEFAULTS, "subscriptionPolicies", *(row.kept for row in rows.POLICIES)}


def test_each_policy_has_an_effect_or_is_declared_to_have_none() -> None:
    declared = {fact.name for fact in POLICIES}
    assert not declared & EFFECTS.keys()
    assert kept_names() == declared | EFFECTS.keys() | OF_OPERATORS


def test_the_tests_that_see_effects_are_there() -> None:
    missing = []
    for place in sorted({*EFFECTS.values(), *KEYS_SEEN_BY.values()}):
        path, _, name = place.partition("::")
        if name and not re.search(rf"^(async )?def {name}\(", text_of(path), re.MULTILINE):
            missing.append(place)
    assert missing == []


def test_a_policy_with_an_effect_is_read_where_brokers_act() -> None:
    """A read counts only outside the modules that store policies and show them."""
    sources = {path for path in (ROOT / "broker").rglob("*.py") if path.parent.name != "policies"}
    sources -= {ROOT / "broker/model/namespace/policies.py", ROOT / "broker/model/policy/event.py"}
    text = "\n".join(path.read_text() for path in sources)
    constants = {row.kept: word for word, row in vars(rows).items() if isinstance(row, Policy)}
    none_can_be_set = {"entryFilters"}
    unread = [
        name
        for name in EFFECTS.keys() - none_can_be_set
        if not re.search(rf'"{name}"|\brows\.{constants.get(name, name)}\b', text)
    ]
    assert unread == []


@cache
def read_attributes() -> set[str]:
    """Return all attributes that the broker reads, except in the modules that declare keys."""
    config = ROOT / "broker" / "config"
    declaring = {config / "pulsar_keys.py", config / "dynamic.py"}
    sources = [path.read_text() for path in (ROOT / "broker").rglob("*.py") if path not in declaring]
    model = "".join(path.read_text() for path in (ROOT / "broker" / "model").rglob("*.py"))
    resolved = [row for word, row in vars(rows).items() if isinstance(row, Policy) and f"rows.{word}" in model]
    of_rows = {key for row in resolved for key in ([row.conf] if isinstance(row.conf, str) else row.conf.values())}
    of_overrides = {key_of(name) for name in (*OVERRIDES, *BUCKET_OVERRIDES)}
    return of_rows | of_overrides | {name for text in sources for name in re.findall(r"\.(\w+)", text)}


def words_of_tests() -> set[str]:
    files = (path for folder in (TESTS, YARDSTICKS) for path in folder.rglob("*.py") if path != Path(__file__))
    texts = (path.read_text() for path in files)
    return {word for text in texts for word in re.findall(r"\w+", text)}


def test_each_key_is_read_and_seen_by_a_test_or_is_declared_to_have_no_effect() -> None:
    read = read_attributes()
    keys = documented_keys().values()
    without_effect = {key.name for key in keys if key.meaning.without_effect} | ONLY_ONE_VALUE
    assert {key.name for key in keys} - read == without_effect
    seen = {*KEYS_SEEN_BY, *map(key_of, (*OVERRIDES, *BUCKET_OVERRIDES))}  # test_auto_scale.py sees the overrides
    assert {key.name for key in keys} & read - seen - words_of_tests() == set()


def test_the_page_of_differences_has_the_same_words() -> None:
    page = (ROOT / "docs" / "differences.md").read_text()
    lines = [f"| {fact.name} | {fact.pulsar} | {fact.why} |" for fact in FACTS]
    in_pulsar = {
        "strictTopicNameEnabled": "nothing",
        "tlsAllowInsecureConnection": "lets in client certificates that nobody signed",
    }
    lines += [
        f"| {key.name} | {in_pulsar[key.name]} | {key.meaning.without_effect} |"
        for key in documented_keys().values()
        if key.meaning.without_effect
    ]
    section = page.partition("## Kept and shown, without an effect\n")[2].partition("\n## ")[0]
    assert [line for line in lines if line not in section.splitlines()] == []


# the list of settings without an effect


@pytest.fixture
async def rest(bed: Bed) -> Rest:
    return Rest(bed.broker)


async def told(rest: Rest) -> list[tuple[str, str]]:
    """Return the place and the text of each setting that the page at / lists."""
    return [(each["where"], each["what"]) for each in (await rest.get("/pulsarium/topics"))["withoutEffect"]]


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "no effect here" in record.getMessage()]


async def test_a_policy_without_effect_is_logged_once_and_shown_until_it_goes(
    rest: Rest, caplog: pytest.LogCaptureFixture
) -> None:
    assert await told(rest) == []
    url = f"{NAMESPACES}/public/default/persistence"
    sent = {"bookkeeperEnsemble": 3, "bookkeeperWriteQuorum": 2, "bookkeeperAckQuorum": 2}
    await rest.done("POST", url, sent)
    await rest.done("POST", url, {**sent, "bookkeeperAckQuorum": 1})
    assert len(logged(caplog)) == 1
    assert "what=persistence where=public/default" in logged(caplog)[0]
    assert (await rest.get(url))["bookkeeperAckQuorum"] == 1
    assert await told(rest) == [("public/default", "persistence")]
    await rest.done("DELETE", url)
    assert await told(rest) == []


async def test_a_topics_policy_is_named_by_its_topic(rest: Rest, caplog: pytest.LogCaptureFixture) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await rest.done("POST", f"{TOPICS}/t/dispatcherPauseOnAckStatePersistent")
    assert await told(rest) == [("persistent://public/default/t", "dispatcherPauseOnAckStatePersistentEnabled")]
    assert len(logged(caplog)) == 1
    await rest.done("DELETE", f"{TOPICS}/t?force=true")
    assert await told(rest) == []


async def test_a_policy_with_an_effect_is_not_named(rest: Rest, caplog: pytest.LogCaptureFixture) -> None:
    await rest.done("POST", f"{NAMESPACES}/public/default/messageTTL", 10)
    assert await told(rest) == []
    assert logged(caplog) == []


@pytest.mark.parametrize(
    ("method", "url", "value", "what"),
    [
        ("POST", "namespaces/public/default/antiAffinity", "group", "bookieAffinity, antiAffinity"),
        ("POST", "brokers/configuration/loadBalancerSheddingEnabled/false", None, "brokers/configuration"),
        ("POST", "clusters/standalone/failureDomains/d", {"brokers": ["localhost:8080"]}, "failureDomains"),
    ],
)
async def test_settings_without_effect_are_named(
    rest: Rest, caplog: pytest.LogCaptureFixture, method: str, url: str, value: Any, what: str
) -> None:
    answer = await rest.call(method, f"{ADMIN}/{url}", *([] if value is None else [value]))
    assert answer.status in (200, 204)
    assert [each for _, each in await told(rest)] == [what]
    assert len(logged(caplog)) == 1


async def test_a_replicated_subscription_is_named(rest: Rest, wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    await wire.subscribe(replicate_subscription_state=True)
    assert await told(rest) == [("persistent://public/default/t/sub", "replicatedSubscriptionStatus")]
    await rest.done("POST", f"{TOPICS}/t/subscription/sub/replicatedSubscriptionStatus", True)
    assert len(logged(caplog)) == 1


async def test_other_clusters_are_named_and_the_brokers_own_is_not(bed: Bed, rest: Rest) -> None:
    await rest.done("PUT", f"{TENANTS}/x", {"allowedClusters": ["standalone"]})
    await rest.done("PUT", f"{NAMESPACES}/x/y", {"replication_clusters": ["standalone"]})
    assert await told(rest) == []
    metadata = bed.broker.metadata
    metadata.put_namespace("x/y", {**metadata.namespaces["x/y"], "replication_clusters": ["standalone", "other"]})
    assert await told(rest) == [("x/y", "replication_clusters")]


def test_remembered_log_lines_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(without_effect, "MOST_LOGGED", 2)
    notices = Notices("c")
    for number in range(5):
        notices.changed(f"n/{number}", {"offload_threshold": 1})
    assert len(list(notices)) == 5
    assert len(notices._logged) == 2
