"""Topics in the console: the list, messages that wait for too long, and the page of one topic."""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing

import pytest
import trio

from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.net import slices
from pulsarium.broker.web.console.listing import REST_MS, Listing
from pulsarium.broker.web.console.topics import PAGE
from pulsarium.broker.web.console.waiting import PATIENCE_MS
from pulsarium.broker.web.http import live
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.auth.secured import bearer, by_token
from tests.broker.passes import passes_of_the_loop
from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.web.http.streams import stream, value_of
from tests.broker.wire import TOPIC, Bed, Earliest, Shared, Type, Wire, batch_of, message_id, plain

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
    assert (topic["name"], topic["loaded"], topic["partitions"], topic["idle"]) == (TOPIC, False, 0, True)
    assert "producers" not in topic
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
    answer = await rest.call("GET", f"{DETAIL}/t")
    assert (answer.status, answer.json) == (404, {"reason": f"Topic {TOPIC} not found", "near": []})


async def test_a_missing_topic_is_answered_with_near_names(rest: Rest) -> None:
    for name in ("orders", "invoices", "order"):
        await rest.done("PUT", f"{TOPICS}/{name}")
    answer = await rest.call("GET", f"{DETAIL}/ordres")
    assert answer.json["near"] == ["persistent://public/default/orders", "persistent://public/default/order"]


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


# the list


async def listed(rest: Rest, query: str = "") -> list[str]:
    """Return the names of the topics in the list, without their namespace."""
    return [row["name"].rpartition("/")[2] for row in (await rest.get(f"{OVERVIEW}?{query}"))["topics"]]


async def test_system_topics_are_listed_only_when_they_are_asked_for(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    bed.broker.topics.create(TopicName.parse("persistent://public/default/__change_events"))
    value = await rest.get(OVERVIEW)
    assert (value["topicCount"], value["userTopics"], value["systemTopics"]) == (1, 1, 1)
    assert value["namespaceCounts"] == [{"name": "public/default", "topics": 1}]
    assert await listed(rest, "system=true") == ["__change_events", "t"]
    value = await rest.get(f"{OVERVIEW}?system=true")
    assert [row["system"] for row in value["topics"]] == [True, False]


async def test_idle_topics_are_counted_and_can_be_left_out(rest: Rest, wire: Wire, bed: Bed) -> None:
    for name in ("idle", "backlog", "published"):
        await rest.done("PUT", f"{TOPICS}/{name}")
    bed.topic("persistent://public/default/backlog").subscribe("s", earliest=True)
    await wire.producer("persistent://public/default/produced")
    for number, name in enumerate(("backlog", "published"), 1):
        await wire.producer(f"persistent://public/default/{name}", number)
        await wire.publish(plain(b"x"), producer_id=number)
        await wire.ask(Type.CLOSE_PRODUCER, producer_id=number)
    value = await rest.get(f"{OVERVIEW}?idle=false")
    assert (value["topicCount"], value["idleTopics"]) == (3, 1)
    assert await listed(rest, "idle=false") == ["backlog", "produced", "published"]
    assert await listed(rest) == ["backlog", "idle", "produced", "published"]
    bed.broker.clock.jump(REST_MS / 1000 + 1)
    assert await listed(rest, "idle=false") == ["backlog", "produced"]


async def test_topics_are_filtered_by_namespace_and_by_a_part_of_the_name(rest: Rest) -> None:
    await rest.done("PUT", "/admin/v2/namespaces/public/other")
    for path in ("public/default/orders", "public/default/users", "public/other/orders"):
        await rest.done("PUT", f"/admin/v2/persistent/{path}")
    value = await rest.get(f"{OVERVIEW}?namespace=public/other")
    assert [row["name"] for row in value["topics"]] == ["persistent://public/other/orders"]
    assert value["namespaceCounts"] == [
        {"name": "public/default", "topics": 2},
        {"name": "public/other", "topics": 1},
    ]
    assert await listed(rest, "filter=order") == ["orders", "orders"]
    assert await listed(rest, "filter=order&offset=1&limit=1") == ["orders"]


async def test_topics_are_sorted_by_what_a_page_asks_for(rest: Rest, wire: Wire, bed: Bed) -> None:
    now = bed.broker.clock.now_ms()
    for number, (name, count, age) in enumerate((("a", 1, 70_000), ("b", 3, 0), ("c", 2, 90_000), ("d", 0, 0))):
        await wire.producer(name, number)
        await wire.subscribe(name, "s", Shared, number, initialPosition=Earliest)
        if count:
            await wire.publish(*[plain(b"x", publish_time=now - age)] * count, producer_id=number)
    await trio.sleep(0.5)
    assert await listed(rest, "sort=name") == ["a", "b", "c", "d"]
    assert await listed(rest, "sort=backlog") == ["b", "c", "a", "d"]
    assert await listed(rest, "sort=age") == ["c", "a", "b", "d"]
    assert (await listed(rest, "sort=stuck"))[:2] == ["a", "c"]
    await wire.flow(consumer_id=2)
    await wire.messages(2)
    orders = []
    for _ in range(20):
        await trio.sleep(0.1)
        orders.append((await listed(rest, "sort=out"))[0])
    assert {*orders} == {"a", "c"}
    assert await rest.refused("GET", f"{OVERVIEW}?sort=color") == (
        400,
        "sort is 'color'; it must be one of name, backlog, in, out, age, stuck",
    )


async def test_a_row_shows_the_trend_of_the_last_minute(rest: Rest, sender: Wire, bed: Bed) -> None:
    await sender.publish(*[plain(b"x")] * 3)
    await trio.sleep(2)
    await sender.publish(*[plain(b"x")] * 2)
    await trio.sleep(2)
    (row,) = (await rest.get(OVERVIEW))["topics"]
    assert [count for count in row["trend"] if count] == [3, 2]
    bed.broker.clock.jump(65)
    (row,) = (await rest.get(OVERVIEW))["topics"]
    assert (row["trend"], row["in"]) == ([], 0)


async def test_a_row_shows_the_age_of_its_oldest_message_and_its_schema(rest: Rest, wire: Wire, bed: Bed) -> None:
    await wire.producer(schema=pb.Schema(name="s", type=pb.Schema.String, schema_data=b""))
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    await wire.publish(plain(b"x", publish_time=bed.broker.clock.now_ms() - 5000))
    (row,) = (await rest.get(OVERVIEW))["topics"]
    assert 5000 <= row["ageMs"] < 6000
    assert (row["schema"], row["stuck"]) == ("STRING", 0)


async def test_a_list_follows_topics_that_come_and_go(rest: Rest) -> None:
    for name in ("a", "b"):
        await rest.done("PUT", f"{TOPICS}/{name}")
    assert await listed(rest) == ["a", "b"]
    await rest.done("DELETE", f"{TOPICS}/a")
    await rest.done("PUT", f"{TOPICS}/c/partitions", 2)
    assert await listed(rest) == ["b", "c"]


async def test_a_list_at_rest_is_not_made_again(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await rest.get(OVERVIEW)
    monkeypatch.setattr(Listing, "_read_rows", None)
    monkeypatch.setattr(Listing, "_read_at_work", None)
    monkeypatch.setattr(Listing, "_find", None)
    assert await listed(rest) == ["t"]


# a topic with parts


async def partitioned(rest: Rest, wire: Wire) -> None:
    """Make a topic of 3 partitions with a producer and a consumer on each, and messages on two of them."""
    await rest.done("PUT", f"{TOPICS}/p/partitions", 3)
    for index in range(3):
        name = f"persistent://public/default/p-partition-{index}"
        await wire.producer(name, index, producer_name="p")
        await wire.subscribe(name, "s", Shared, index, consumer_name="c", initialPosition=Earliest)
    for index, count in ((0, 1), (2, 3)):
        await wire.publish(*[plain(b"x")] * count, producer_id=index)


async def test_a_partitioned_topic_has_the_subscriptions_of_its_partitions(rest: Rest, wire: Wire) -> None:
    await partitioned(rest, wire)
    await wire.flow(2, consumer_id=2)
    await wire.messages(2)
    topic = await rest.get(f"{DETAIL}/p")
    assert (topic["kind"], topic["messagesIn"], topic["entries"]) == ("partitioned", 4, 4)
    assert [row["name"].rpartition("/")[2] for row in topic["partitions"]] == [f"p-partition-{n}" for n in range(3)]
    (subscription,) = topic["subscriptions"]
    assert [subscription[name] for name in ("name", "backlog", "unacked", "messagesOut")] == ["s", 4, 2, 2]
    assert subscription["shares"] == [1, 0, 3]
    assert [(part["part"], part["backlog"], part["unacked"]) for part in subscription["parts"]] == [
        (2, 3, 2),
        (0, 1, 0),
    ]


async def test_a_client_on_several_partitions_is_one_row(rest: Rest, wire: Wire) -> None:
    await partitioned(rest, wire)
    topic = await rest.get(f"{DETAIL}/p")
    (producer,) = topic["producers"]
    assert (producer["name"], producer["parts"], producer["messagesIn"]) == ("p", [0, 1, 2], 4)
    (subscription,) = topic["subscriptions"]
    (consumer,) = subscription["consumers"]
    assert (consumer["name"], consumer["parts"]) == ("c", [0, 1, 2])
    assert (topic["producerCount"], subscription["consumerCount"]) == (1, 1)


async def test_a_partition_names_its_partitioned_topic(rest: Rest, wire: Wire) -> None:
    await partitioned(rest, wire)
    topic = await rest.get(f"{DETAIL}/p-partition-2")
    assert (topic["kind"], topic["partitionOf"]) == ("partition", "persistent://public/default/p")
    assert (topic["messagesIn"], topic["subscriptions"][0]["backlog"]) == (3, 3)
    assert "shares" not in topic["subscriptions"][0]


async def test_a_scalable_topic_has_the_subscriptions_of_its_segments(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", "/admin/v2/scalable/public/default/s?numInitialSegments=2")
    for number, segment in enumerate(("0000-7fff-0", "8000-ffff-1")):
        await wire.producer(f"segment://public/default/s/{segment}", number)
        await wire.subscribe(f"segment://public/default/s/{segment}", "sub", Shared, number, initialPosition=Earliest)
        await wire.publish(plain(b"x"), producer_id=number)
    topic = await rest.get("/pulsarium/topic/topic/public/default/s")
    assert (topic["kind"], topic["messagesIn"], len(topic["segments"])) == ("scalable", 2, 2)
    (subscription,) = topic["subscriptions"]
    assert (subscription["backlog"], subscription["shares"]) == (2, [1, 1])
    assert {part["part"] for part in subscription["parts"]} == {"0000-7fff-0", "8000-ffff-1"}


@pytest.mark.parametrize(
    ("path", "kind"),
    [("persistent/public/default/t", "topic"), ("non-persistent/public/default/t", "nonPersistent")],
)
async def test_a_topic_has_a_kind(rest: Rest, wire: Wire, path: str, kind: str) -> None:
    await wire.producer(path.replace("/", "://", 1))
    assert (await rest.get(f"/pulsarium/topic/{path}"))["kind"] == kind


async def test_a_subscription_names_its_next_message(rest: Rest, sender: Wire) -> None:
    await sender.subscribe(type=Shared, initialPosition=Earliest)

    async def following() -> str:
        (subscription,) = (await rest.get(f"{DETAIL}/t"))["subscriptions"]
        return str(subscription["next"])

    assert await following() == ""
    first, second, third = await sender.publish(plain(b"1"), plain(b"2"), plain(b"3"))
    await sender.flow()
    await sender.messages(3)
    assert await following() == str(first)
    await sender.ack(second)
    assert await following() == str(first)
    await sender.ack(first)
    assert await following() == str(third)


async def test_a_subscription_counts_what_it_was_sent_again(rest: Rest, sender: Wire) -> None:
    await sender.subscribe(type=Shared, initialPosition=Earliest)
    (position,) = await sender.publish(plain(b"1"))
    await sender.flow()
    for _ in range(2):
        await sender.message()
        await sender.redeliver([position])
    await sender.message()
    (subscription,) = (await rest.get(f"{DETAIL}/t"))["subscriptions"]
    assert (subscription["redelivered"], subscription["consumers"][0]["redelivered"]) == (2, 2)
    await sender.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    (subscription,) = (await rest.get(f"{DETAIL}/t"))["subscriptions"]
    assert subscription["redelivered"] == 2


async def test_a_stream_shows_the_rates_of_producers_and_subscriptions(
    rest: Rest, sender: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "thread_time", lambda: 0.0)  # a long look would be followed by a longer pause
    await sender.subscribe(type=Shared, initialPosition=Earliest)
    await sender.flow()
    async with aclosing(await stream(rest, b"/pulsarium/topic/persistent/public/default/t")) as events:
        await anext(events)
        positions = await sender.publish(*[plain(b"x")] * 5)
        await sender.messages(5)
        await sender.ack(*positions)
        looks = [await anext(events) for _ in range(3)]
    seen = [value_of(look) for look in looks if look.startswith(b"data: ")]
    assert max(value["producers"][0]["in"] for value in seen) == 5
    assert max(value["subscriptions"][0]["out"] for value in seen) == 5
    assert max(value["subscriptions"][0]["ackRate"] for value in seen) == 5
