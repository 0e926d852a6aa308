"""Topics in the console: the list, messages that wait for too long, and the page of one topic."""

from __future__ import annotations

from collections import Counter

import pytest

from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.net import slices
from pulsarium.broker.web.console.topics import PAGE
from pulsarium.broker.web.console.waiting import PATIENCE_MS
from pulsarium.proto.topic_name import TopicName
from tests.broker.auth.secured import bearer, by_token
from tests.broker.passes import passes_of_the_loop
from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.wire import TOPIC, Bed, Earliest, Shared, Wire, batch_of, message_id, plain

OVERVIEW = "/pulsarium/topics"
DETAIL = "/pulsarium/topic/persistent/public/default"


async def test_the_status_page_says_ok(rest: Rest) -> None:
    answer = await rest.call("GET", "/status.html")
    assert (answer.status, answer.body) == (200, b"OK")


async def test_the_overview_of_a_broker_without_topics(rest: Rest) -> None:
    value = await rest.get(OVERVIEW)
    assert (value["topicCount"], value["topics"], value["late"], value["connections"]) == (0, [], [], 0)
    assert (value["serviceUrl"], value["role"], value["clock"]) == ("pulsar://localhost:6650", None, None)


async def test_a_broker_is_up_in_real_time(rest: Rest, bed: Bed) -> None:
    before = (await rest.get(OVERVIEW))["upSinceMs"]
    bed.broker.clock.jump(1e6)
    value = await rest.get(OVERVIEW)
    assert value["upSinceMs"] == before == bed.broker.clock.machine.now_ms()
    assert value["clock"] == {"frozen": False, "aheadMs": 1_000_000_000}


async def test_a_frozen_clock_is_shown(rest: Rest, bed: Bed) -> None:
    bed.broker.clock.freeze()
    assert (await rest.get(OVERVIEW))["clock"] == {"frozen": True, "nowMs": bed.broker.clock.now_ms()}


async def stuck(wire: Wire, *entries: bytes) -> None:
    await wire.producer()
    await wire.subscribe(type=Shared, initialPosition=Earliest, consumer_name="c")
    await wire.publish(*entries)
    await wire.flow(2)
    await wire.messages(2)


async def test_a_topic_shows_why_nothing_more_is_delivered(rest: Rest, wire: Wire) -> None:
    await stuck(wire, *[plain(b"x")] * 5)
    topic = await rest.get(f"{DETAIL}/t")
    assert (topic["name"], topic["messagesIn"], topic["producerCount"]) == (TOPIC, 5, 1)
    assert topic["storageSize"] == 5 * len(plain(b"x"))
    (subscription,) = topic["subscriptions"]
    assert (subscription["backlog"], subscription["unacked"], subscription["messagesOut"]) == (5, 2, 2)
    assert subscription["reason"].startswith("no consumer has permits left")
    (consumer,) = subscription["consumers"]
    assert (consumer["name"], consumer["permits"], consumer["unacked"]) == ("c", 0, 2)
    await wire.flow(100)
    await wire.messages(3)
    topic = await rest.get(f"{DETAIL}/t")
    assert topic["subscriptions"][0]["reason"] == "everything was delivered"


async def test_a_subscription_without_progress_is_late_after_a_minute(rest: Rest, wire: Wire, bed: Bed) -> None:
    now = bed.broker.clock.now_ms()
    await stuck(wire, *[plain(b"x", publish_time=now)] * 2)
    assert not (await rest.get(OVERVIEW))["late"]
    bed.broker.clock.jump(PATIENCE_MS / 1000 + 1)
    value = await rest.get(OVERVIEW)
    late = {"subscription": "sub", "reason": "everything was delivered", "since": now}
    assert value["late"] == [{"topic": TOPIC, **late}]
    assert value["topics"][0]["late"] == late
    assert (await rest.get(f"{DETAIL}/t"))["subscriptions"][0]["late"]


async def test_an_acknowledgement_is_progress(rest: Rest, wire: Wire, bed: Bed) -> None:
    await wire.producer()
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    first, _ = await wire.publish(plain(b"1"), plain(b"2"))
    await wire.flow(2)
    await wire.messages(2)
    bed.broker.clock.jump(PATIENCE_MS / 1000 + 1)
    assert (await rest.get(OVERVIEW))["late"]
    await wire.ack(first)
    assert not (await rest.get(OVERVIEW))["late"]


async def test_delayed_messages_are_not_late(rest: Rest, wire: Wire, bed: Bed) -> None:
    await wire.producer()
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    await wire.flow()
    due = bed.broker.clock.now_ms() + 10 * PATIENCE_MS
    await wire.publish(plain(b"x", deliver_at_time=due))
    bed.broker.clock.jump(PATIENCE_MS / 1000 + 1)
    assert not (await rest.get(OVERVIEW))["late"]
    assert (await rest.get(f"{DETAIL}/t"))["subscriptions"][0]["delayed"] == 1


async def test_a_topic_shows_partly_acknowledged_batches(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    (position,) = await wire.publish(batch_of(b"1", b"2", b"3"), num_messages=3)
    await wire.flow()
    await wire.message()
    await wire.ack(message_id=[message_id(position, ack_set=[0b110])])
    (subscription,) = (await rest.get(f"{DETAIL}/t"))["subscriptions"]
    assert subscription["batches"] == [{"id": str(position), "left": 2}]


async def test_the_numbers_of_many_subscriptions_are_collected_in_slices(
    rest: Rest, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    await wire.producer()
    for consumer_id in range(5):
        await wire.subscribe(name=f"s{consumer_id}", consumer_id=consumer_id)
    await wire.publish(plain(b"1"), plain(b"2"))
    seen, backlog = list[int](), ManagedCursor.backlog

    def noting(cursor: ManagedCursor) -> int:
        seen.append(passes.number)
        return backlog(cursor)

    monkeypatch.setattr(slices, "SLICE", 0)
    monkeypatch.setattr(ManagedCursor, "backlog", noting)
    with passes_of_the_loop() as passes:
        (row,) = (await rest.get("/pulsarium/topics"))["topics"]
    assert (row["subscriptions"], row["consumers"], row["backlog"]) == (5, 5, 10)
    assert max(Counter(seen).values()) < 5


async def test_non_persistent_topics_have_no_backlog(rest: Rest, wire: Wire) -> None:
    await wire.subscribe(f"non-{TOPIC}")
    topic = await rest.get("/pulsarium/topic/non-persistent/public/default/t")
    assert topic["storageSize"] is None
    assert (topic["subscriptions"][0]["backlog"], topic["subscriptions"][0]["reason"]) == (None, None)


async def test_looking_loads_nothing(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await rest.done("PUT", f"{TOPICS}/t/unload")
    (topic,) = (await rest.get(OVERVIEW))["topics"]
    assert topic == {"name": TOPIC, "loaded": False, "partitions": 0}
    assert not (await rest.get(f"{DETAIL}/t"))["loaded"]
    assert not bed.broker.topics.loaded


async def test_the_list_has_pages_and_a_filter(rest: Rest) -> None:
    for number in range(PAGE + 2):
        await rest.done("PUT", f"{TOPICS}/many{number:03}")
    value = await rest.get(OVERVIEW)
    assert (value["topicCount"], len(value["topics"])) == (PAGE + 2, PAGE)
    value = await rest.get(f"{OVERVIEW}?offset={PAGE}&limit=10")
    assert [each["name"][-3:] for each in value["topics"]] == ["050", "051"]
    value = await rest.get(f"{OVERVIEW}?filter=default%2Fmany007")
    assert (value["topicCount"], len(value["topics"])) == (1, 1)
    assert (await rest.refused("GET", f"{OVERVIEW}?offset=x"))[0] == 400


async def test_the_partitions_of_a_topic_are_one_row(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{TOPICS}/many/partitions", 3)
    await wire.producer(f"{TOPICS.replace('/admin/v2/persistent', 'persistent:/')}/many-partition-1")
    (row,) = (await rest.get(OVERVIEW))["topics"]
    assert (row["name"], row["partitions"], row["producers"]) == ("persistent://public/default/many", 3, 1)
    parts = (await rest.get(f"{DETAIL}/many"))["partitions"]
    assert [each["producers"] for each in parts] == [0, 1, 0]


async def test_a_scalable_topic_has_its_segments_and_its_scaling(bed: Bed, rest: Rest) -> None:
    cluster = bed.broker.cluster
    topic = cluster.scalable.create(TopicName.parse("topic://public/default/s"))
    cluster.controllers.lead(topic, bed.broker)
    assert (await rest.call("POST", "/admin/v2/scalable/public/default/s/split/0")).status == 204
    (row,) = (await rest.get(OVERVIEW))["topics"]
    assert (row["name"], row["segments"]) == ("topic://public/default/s", 3)
    shown = await rest.get("/pulsarium/topic/topic/public/default/s")
    segments = [(each["id"], each["active"], each["parents"]) for each in shown["segments"]]
    assert segments == [(0, False, []), (1, True, [0]), (2, True, [0])]
    assert shown["scaling"].startswith("split of segment 0 at ")


async def test_a_missing_topic_is_not_found(rest: Rest) -> None:
    assert await rest.refused("GET", f"{DETAIL}/t") == (404, f"Topic {TOPIC} not found")


@pytest.mark.serving(by_token(authorizationEnabled=True, superUserRoles=("admin",)))
async def test_a_role_needs_rights_on_what_a_page_shows(rest: Rest) -> None:
    assert (await rest.call("PUT", f"{TOPICS}/t", {}, **bearer("admin"))).status == 204
    assert (await rest.call("GET", OVERVIEW, **bearer("user"))).status == 401
    assert (await rest.call("GET", f"{DETAIL}/t", **bearer("user"))).status == 401
    value = (await rest.call("GET", f"{DETAIL}/t", **bearer("admin"))).json
    assert value["role"] == "admin"


@pytest.mark.parametrize("page", ["topic", "messages", "policies"])
@pytest.mark.parametrize("name", ["xx/public/default/t", "persistent/public/a%2Fb/t", "segment/public/default/t"])
async def test_a_name_that_is_no_topic_is_refused(rest: Rest, page: str, name: str) -> None:
    assert await rest.refused("GET", f"/pulsarium/{page}/{name}") == (412, "Topic name is not valid")
