"""The search behind Ctrl-K: topics, subscriptions, namespaces and clients by a part of their name."""

from __future__ import annotations

from pulsarium.broker.web.console.find import MOST
from pulsarium.proto.topic_name import TopicName
from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.wire import Bed, Wire

FIND = "/pulsarium/find"


def create(bed: Bed, *names: str) -> None:
    for name in names:
        bed.broker.topics.create(TopicName.parse(f"persistent://public/default/{name}"))


async def test_topics_are_found_by_any_case_of_a_part_of_their_name(rest: Rest, bed: Bed) -> None:
    create(bed, "Orders-EU", "payments")
    assert (await rest.get(f"{FIND}?text=ers-eu"))["topics"] == ["persistent://public/default/Orders-EU"]


async def test_the_partitions_of_a_topic_are_one_and_their_subscriptions_too(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", f"{TOPICS}/parted/partitions", 3)
    await rest.done("PUT", f"{TOPICS}/parted/subscription/of-parted", "earliest")
    found = await rest.get(f"{FIND}?text=parted")
    whole = "persistent://public/default/parted"
    assert (found["topics"], found["subscriptions"]) == ([whole], [{"topic": whole, "name": "of-parted"}])


async def test_at_most_eight_of_each_kind_are_found(rest: Rest, bed: Bed) -> None:
    create(bed, *(f"many-{number}" for number in range(MOST + 1)))
    assert len((await rest.get(f"{FIND}?text=many"))["topics"]) == MOST


async def test_namespaces_and_clients_are_found(rest: Rest, wire: Wire) -> None:
    assert (await rest.get(f"{FIND}?text=lic/def"))["namespaces"] == ["public/default"]
    (found,) = (await rest.get(f"{FIND}?text="))["clients"]
    assert found.keys() == {"client", "address"}
