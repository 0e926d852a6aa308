"""Scalable topics over REST."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.config.profile import PROFILES
from pulsarium.proto.topic_name import TopicName
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, TOPICS, Rest, rest_of
from tests.broker.wire import Bed, Wire, serving

SCALABLE = f"{ADMIN}/scalable/public/default"
NAME = "topic://public/default/t"
UNEXPECTED = "\n --- An unexpected error occurred in the server ---\n\nMessage: "


async def test_a_new_topic_is_listed_and_shown(rest: Rest) -> None:
    await rest.done("PUT", f"{SCALABLE}/t?numInitialSegments=2", {"k": "v"})
    await rest.done("PUT", f"{SCALABLE}/u")
    assert await rest.get(SCALABLE) == [NAME, "topic://public/default/u"]
    record = await rest.get(f"{SCALABLE}/t")
    assert (record["epoch"], record["nextSegmentId"], record["properties"]) == (0, 2, {"k": "v"})
    low = record["segments"]["0"]
    assert (low["hashRange"], low["state"], low["root"], low["leaf"]) == (
        {"start": 0, "end": 32767},
        "ACTIVE",
        True,
        True,
    )


async def test_a_list_shows_only_topics_with_all_properties(rest: Rest) -> None:
    await rest.done("PUT", f"{SCALABLE}/a", {"k": "v", "n": "1"})
    await rest.done("PUT", f"{SCALABLE}/b", {"k": "v", "n": "2"})
    assert await rest.get(f"{SCALABLE}?property=n%3D2&property=k%3Dv") == ["topic://public/default/b"]
    assert await rest.get(f"{SCALABLE}?property=n%3D2&property=n%3D1") == []
    assert await rest.refused("GET", f"{SCALABLE}?property=n") == (
        412,
        "property filter must be in the form key=value, got: n",
    )


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("PUT", "t", 409, f"Scalable topic already exists: {NAME}"),
        ("PUT", "x?numInitialSegments=0", 412, "numInitialSegments must be >= 1"),
        ("PUT", "x?numInitialSegments=1025", 412, "numInitialSegments must be <= 1024"),
        (
            "PUT",
            "x-partition-0",
            412,
            "A scalable topic has no partitions: use topic://public/default/x",
        ),
        ("GET", "none", 404, "Scalable topic not found: topic://public/default/none"),
        ("DELETE", "none", 404, "Scalable topic not found: topic://public/default/none"),
        ("POST", "none/split/0", 404, "Scalable topic not found: topic://public/default/none"),
        ("POST", "none/migrate", 404, "Topic does not exist: persistent://public/default/none"),
        ("POST", "t/split/9", 404, "Segment not found: 9"),
        ("POST", "t/merge/0/0", 412, "Segments are not adjacent: [0000, ffff] and [0000, ffff]"),
        ("POST", "t/rebucket/0?bucketCount=0", 412, "bucketCount must be in [1, 1024]: 0"),
        ("POST", "t/rebucket/9?bucketCount=8", 412, "Segment not found: 9"),
        ("POST", "t/rebucket/0?bucketCount=4", 412, "Segment 0 already has the requested entry-bucket splits"),
        ("POST", "t/migrate", 409, f"Topic is already scalable: {NAME}"),
    ],
)
async def test_a_call_that_does_not_fit_is_refused_in_pulsars_words(
    rest: Rest, method: str, path: str, status: int, text: str
) -> None:
    await rest.done("PUT", f"{SCALABLE}/t")
    assert await rest.refused(method, f"{SCALABLE}/{path}") == (status, text)


@pytest.mark.parametrize("path", ["t/split/x", "t/merge/0/x"])
async def test_a_segment_that_is_no_number_is_not_found(rest: Rest, path: str) -> None:
    assert (await rest.call("POST", f"{SCALABLE}/{path}")).status == 404


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("t/split/9", "Segment not found: 9"),
        ("none/split/0", "Failed to initialize controller for topic://public/default/none"),
    ],
)
@pytest.mark.serving(profile=PROFILES["pulsar-5.0"])
async def test_released_brokers_answer_500_to_a_change_that_does_not_fit(rest: Rest, path: str, text: str) -> None:
    await rest.done("PUT", f"{SCALABLE}/t")
    status, reason = await rest.refused("POST", f"{SCALABLE}/{path}")
    assert (status, reason.strip()) == (500, f"{UNEXPECTED}{text}".strip())


@pytest.mark.serving(profile=PROFILES["pulsar-5.0-m1"])
async def test_the_milestone_has_no_buckets(rest: Rest) -> None:
    await rest.done("PUT", f"{SCALABLE}/t")
    record = await rest.get(f"{SCALABLE}/t")
    assert "deleted" not in record
    assert "entryBucketSplits" not in record["segments"]["0"]
    assert (await rest.call("POST", f"{SCALABLE}/t/rebucket/0?bucketCount=8")).status == 404


@pytest.mark.parametrize("profile", ["pulsar-5.0", "pulsar-5.0-m1"])
async def test_released_brokers_create_topics_without_a_namespace(profile: str) -> None:
    async with serving(profile=PROFILES[profile]) as bed:
        await rest_of(bed).done("PUT", f"{ADMIN}/scalable/public/none/t")
        assert await rest_of(bed).get(f"{ADMIN}/scalable/public/none") == ["topic://public/none/t"]


@pytest.mark.parametrize(("segments", "splits"), [(1, [16384, 32768, 49152]), (4, [])])
async def test_the_record_has_the_buckets_of_each_segment(rest: Rest, segments: int, splits: list[int]) -> None:
    await rest.done("PUT", f"{SCALABLE}/t?numInitialSegments={segments}")
    record = await rest.get(f"{SCALABLE}/t")
    assert record["deleted"] is False
    assert record["segments"]["0"]["entryBucketSplits"] == splits


@pytest.mark.parametrize(("profile", "left"), [("pip", []), ("pulsar-5.0-m1", ["persistent://public/default/t"])])
async def test_a_migrated_topic_is_deleted_with_its_persistent_topic_except_in_m1(
    profile: str, left: list[str]
) -> None:
    async with serving(profile=PROFILES[profile]) as bed:
        rest = rest_of(bed)
        await rest.done("PUT", f"{TOPICS}/t")
        await rest.done("POST", f"{SCALABLE}/t/migrate")
        await rest.done("DELETE", f"{SCALABLE}/t")
        assert await rest.get(TOPICS) == left


async def test_a_topic_needs_a_namespace(rest: Rest) -> None:
    assert await rest.refused("PUT", f"{ADMIN}/scalable/public/none/t") == (404, "Namespace not found")


async def test_split_merge_and_rebucket_change_the_layout(rest: Rest) -> None:
    await rest.done("PUT", f"{SCALABLE}/t")
    await rest.done("POST", f"{SCALABLE}/t/split/0")
    await rest.done("POST", f"{SCALABLE}/t/merge/1/2")
    await rest.done("POST", f"{SCALABLE}/t/rebucket/3?bucketCount=8")
    record = await rest.get(f"{SCALABLE}/t")
    assert record["epoch"] == 3
    assert [each["childIds"] for each in record["segments"].values()] == [[1, 2], [3], [3], [4], []]
    assert len(record["segments"]["4"]["entryBucketSplits"]) == 7


async def test_segments_are_hidden_from_every_list_of_persistent_topics(bed: Bed, rest: Rest) -> None:
    await rest.done("PUT", f"{SCALABLE}/t")
    assert await rest.get(TOPICS) == []
    assert await rest.get(f"{NAMESPACES}/public/default/topics?mode=ALL") == []
    assert bed.broker.topics.exists(TopicName.parse("segment://public/default/t/0000-ffff-0"))


async def test_a_topic_with_clients_is_deleted_only_with_force(bed: Bed, rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{SCALABLE}/t")
    await wire.producer("segment://public/default/t/0000-ffff-0")
    assert (await rest.refused("DELETE", f"{SCALABLE}/t"))[0] == 412
    await rest.done("DELETE", f"{SCALABLE}/t?force=true")
    assert await rest.get(SCALABLE) == []
    assert not bed.broker.topics.exists(TopicName.parse("segment://public/default/t/0000-ffff-0"))


async def test_a_partitioned_topic_is_migrated_once_older_clients_have_gone(bed: Bed, rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{TOPICS}/t/partitions", 2)
    await wire.producer("persistent://public/default/t-partition-0")
    status, text = await rest.refused("POST", f"{SCALABLE}/t/migrate")
    assert (status, text.partition(" ")[0]) == (409, "1")
    await rest.done("POST", f"{SCALABLE}/t/migrate?force=true")
    record = await rest.get(f"{SCALABLE}/t")
    assert [each["state"] for each in record["segments"].values()] == ["SEALED", "SEALED", "ACTIVE", "ACTIVE"]
    assert record["segments"]["0"]["legacyTopicName"] == "persistent://public/default/t-partition-0"
    assert (await rest.get(f"{TOPICS}/t-partition-1/internalStats"))["state"] == "Terminated"


async def test_clients_that_know_scalable_topics_do_not_hinder_a_migration(rest: Rest, wire: Wire) -> None:
    await wire.producer("persistent://public/default/t", metadata=[{"key": "__pulsar.v5.managed", "value": "true"}])
    await rest.done("POST", f"{SCALABLE}/t/migrate")


@pytest.mark.serving(Config(forceDeleteNamespaceAllowed=True))
async def test_a_namespace_with_scalable_topics_is_deleted_only_with_force(bed: Bed, rest: Rest) -> None:
    await rest.done("PUT", f"{NAMESPACES}/public/n")
    await rest.done("PUT", f"{ADMIN}/scalable/public/n/t")
    assert await rest.refused("DELETE", f"{NAMESPACES}/public/n") == (409, "Cannot delete non empty namespace")
    await rest.done("DELETE", f"{NAMESPACES}/public/n?force=true")
    assert bed.broker.cluster.scalable.all() == []


async def test_permissions_are_granted_on_a_scalable_topic(rest: Rest) -> None:
    await rest.done("PUT", f"{SCALABLE}/t")
    await rest.done("POST", f"{SCALABLE}/t/permissions/me", ["produce"])
    assert await rest.get(f"{SCALABLE}/t/permissions") == {"me": ["produce"]}
    await rest.done("DELETE", f"{SCALABLE}/t/permissions/me")
    assert await rest.get(f"{SCALABLE}/t/permissions") == {}


@pytest.mark.parametrize("path", ["topic/public/default/t", "segment/public/default/t%2F0000-ffff-0"])
async def test_http_looks_up_scalable_topics_and_segments(rest: Rest, path: str) -> None:
    found: dict[str, Any] = await rest.get(f"/lookup/v2/topic/{path}")
    assert found["brokerUrl"].startswith("pulsar://")


@pytest.mark.parametrize(
    ("profile", "config", "status"),
    [
        ("pulsar-4.2", Config(), 404),
        ("pulsar-5.0", Config(scalableTopicsEnabled=False), 404),
        ("pulsar-5.0-m1", Config(scalableTopicsEnabled=False), 204),
    ],
)
async def test_only_brokers_with_scalable_topics_have_the_routes(profile: str, config: Config, status: int) -> None:
    async with serving(config, profile=PROFILES[profile]) as bed:
        assert (await rest_of(bed).call("PUT", f"{SCALABLE}/t")).status == status
