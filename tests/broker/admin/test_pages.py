"""What a browser sees."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from pulsarium.broker.admin.page import PAGE
from pulsarium.broker.admin.pages import SHOWN
from pulsarium.proto.topic_name import TopicName
from tests.broker.admin.rest import TOPICS, Rest
from tests.broker.wire import TOPIC, Bed, Earliest, Shared, Wire, plain

OVERVIEW = "/pulsarium/topics"


class Checker(HTMLParser):
    """Notes what a page loads, and that its elements are closed."""

    EMPTY = ("meta", "link", "input")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href", "action")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def test_the_status_page_says_ok(rest: Rest) -> None:
    answer = await rest.call("GET", "/status.html")
    assert (answer.status, answer.body) == (200, b"OK")


async def test_the_page_needs_nothing_from_elsewhere(rest: Rest) -> None:
    answer = await rest.call("GET", "/", accept="text/html")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    checker = Checker()
    checker.feed(answer.body.decode())
    assert not checker.open
    assert {address.partition(":")[0] for address in checker.addresses} == {"data", "pulsarium/topics"}


def test_names_are_never_read_as_markup() -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", PAGE)


async def test_the_overview_of_a_broker_without_topics(rest: Rest) -> None:
    value = await rest.get(OVERVIEW)
    assert (value["topicCount"], value["topics"], value["connections"]) == (0, [], 0)
    assert value["serviceUrl"] == "pulsar://localhost:6650"
    assert value["uptimeSeconds"] == 0


async def test_the_overview_says_why_nothing_more_is_delivered(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe(type=Shared, initialPosition=Earliest, consumer_name="c")
    await wire.publish(*[plain(b"x")] * 5)
    await wire.flow(2)
    await wire.messages(2)
    (topic,) = (await rest.get(OVERVIEW))["topics"]
    assert (topic["name"], topic["messagesIn"], len(topic["producers"])) == (TOPIC, 5, 1)
    assert topic["storageSize"] == 5 * len(plain(b"x"))
    (subscription,) = topic["subscriptions"]
    assert (subscription["backlog"], subscription["unacked"], subscription["messagesOut"]) == (5, 2, 2)
    assert subscription["reason"].startswith("no consumer has permits left")
    assert subscription["consumers"][0]["name"] == "c"
    await wire.flow(100)
    await wire.messages(3)
    (topic,) = (await rest.get(OVERVIEW))["topics"]
    assert topic["subscriptions"][0]["reason"] == "everything was delivered"


async def test_the_reason_that_the_page_knows() -> None:
    from pulsarium.broker.model.subscription.dispatcher import Reason

    assert f'const CAUGHT_UP = "{Reason.CAUGHT_UP.value}";' in PAGE


async def test_non_persistent_topics_have_no_backlog(rest: Rest, wire: Wire) -> None:
    await wire.subscribe(f"non-{TOPIC}")
    (topic,) = (await rest.get(OVERVIEW))["topics"]
    assert topic["storageSize"] is None
    assert (topic["subscriptions"][0]["backlog"], topic["subscriptions"][0]["reason"]) == (None, None)


async def test_looking_loads_nothing(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await rest.done("PUT", f"{TOPICS}/t/unload")
    (topic,) = (await rest.get(OVERVIEW))["topics"]
    assert topic == {"name": TOPIC, "loaded": False, "producers": [], "subscriptions": []}
    assert not bed.broker.topics.loaded


async def test_the_overview_shows_some_of_many_topics(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/many/partitions", SHOWN + 10)
    await rest.done("PUT", f"{TOPICS}/z")
    value = await rest.get(OVERVIEW)
    assert (value["topicCount"], len(value["topics"])) == (SHOWN + 11, SHOWN)
    value = await rest.get(f"{OVERVIEW}?filter=default%2Fz")
    assert (value["topicCount"], len(value["topics"])) == (1, 1)


async def test_the_overview_shows_a_scalable_topic_with_its_segments_and_its_scaling(bed: Bed, rest: Rest) -> None:
    cluster = bed.broker.cluster
    topic = cluster.scalable.create(TopicName.parse("topic://public/default/s"))
    cluster.controllers.lead(topic, bed.broker)
    assert (await rest.call("POST", "/admin/v2/scalable/public/default/s/split/0")).status == 204
    (shown,) = (await rest.get(OVERVIEW))["topics"]
    assert shown["name"] == "topic://public/default/s"
    assert [(each["id"], each["active"]) for each in shown["segments"]] == [(1, True), (0, False), (2, True)]
    assert shown["scaling"].startswith("split of segment 0 at ")
