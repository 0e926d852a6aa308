"""/admin/v2/namespaces: bundles."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import PULSAR_4_2
from pulsarium.broker.model.namespace.policies import bundle_of, hash_position
from pulsarium.proto.topic_name import TopicName
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, Rest, rest_of
from tests.broker.web.admin.steps import Reason, Step, play
from tests.broker.wire import Bed, Type, Wire

URL = f"{NAMESPACES}/public/bun"
TOPICS = f"{ADMIN}/persistent/public/bun"
MISSING = f"{NAMESPACES}/public/missing"
FIRST = "0x00000000_0x40000000"
SECOND = "0x40000000_0x80000000"
NOT_OWNED = "Failed to find ownership for ServiceUnit:"
QUARTERS = ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]
JUNK = {"reason": "Invalid bundle range: junk"}
NO_NAMESPACE = {"reason": "Namespace not found"}


def topic(local: str) -> TopicName:
    return TopicName.parse(f"persistent://public/bun/{local}")


def names_in(bundle: str, count: int) -> list[str]:
    """Return `count` names of topics that fall into `bundle`, one of four."""
    found = [str(number) for number in range(1000) if bundle_of(QUARTERS, topic(str(number))) == bundle]
    return found[:count]


@pytest.fixture
async def quartered(rest: Rest) -> Rest:
    await rest.done("PUT", URL)
    return rest


async def boundaries(rest: Rest) -> list[str]:
    bundles = await rest.get(f"{URL}/bundles")
    assert bundles["numBundles"] == len(bundles["boundaries"]) - 1
    found: list[str] = bundles["boundaries"]
    return found


async def test_ranges_of_bundles_that_are_not_there_are_refused(quartered: Rest) -> None:
    listless = {"reason": "Cannot find bundle public/bun/0x10000000_0x40000000 in the bundles list"}
    await play(
        quartered,
        Step(f"PUT {URL}/0x10000000_0x40000000/unload", 412, listless),
        Step(f"PUT {URL}/junk/unload", 412, {"reason": "Invalid bundle range"}),
        Step(f"PUT {URL}/junk/split", 412, JUNK),
        Step(f"PUT {URL}/0x40000000_0x00000000/split", 412, {"reason": "Invalid range: [1073741824..0)"}),
        Step(f"PUT {URL}/1_2_3/split", 412, Reason("Cannot find bundle public/bun/0x00000001_0x00000002 in")),
        Step(f"PUT {MISSING}/{FIRST}/unload", 404, NO_NAMESPACE),
        Step(f"PUT {MISSING}/{FIRST}/split", 404, NO_NAMESPACE),
    )


@pytest.mark.serving(profile=PULSAR_4_2)
async def test_junk_is_a_fault_of_the_released_brokers_own(bed: Bed) -> None:
    assert (await rest_of(bed).refused("PUT", f"{NAMESPACES}/public/default/junk/unload"))[0] == 500


@pytest.mark.req("B-50")
async def test_unloading_a_bundle_disconnects_only_its_clients(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", URL)
    here, there = names_in(FIRST, 1), names_in("0x80000000_0xc0000000", 1)
    await wire.producer(str(topic(here[0])))
    await wire.subscribe(str(topic(there[0])))
    await rest.done("PUT", f"{URL}/{FIRST}/unload")
    await wire.expect(Type.CLOSE_PRODUCER)
    await rest.done("PUT", f"{URL}/{FIRST}/unload")  # no broker serves the bundle now
    await wire.quiet()


@pytest.mark.serving(brokers=2)
async def test_a_bundle_goes_to_a_broker_that_is_named(bed: Bed, rest: Rest) -> None:
    await rest.done("PUT", URL)
    unload = f"PUT {URL}/{FIRST}/unload?destinationBroker"
    await play(
        rest,
        Step(f"{unload}=http://localhost:8081", 204),
        Step(f"{unload}=localhost:1", 409, Reason("Not allowed unload namespace bundle to inactive destination")),
    )
    assert bed.broker.cluster.ownership.owner_of("public/bun", FIRST) is bed.brokers[1]


async def test_hash_positions_of_the_topics_of_a_bundle(quartered: Rest) -> None:
    inside, outside = names_in(FIRST, 2), names_in("0x80000000_0xc0000000", 1)
    for local in [*inside, *outside]:
        await quartered.done("PUT", f"{TOPICS}/{local}")
    positions = {str(topic(local)): hash_position(topic(local)) for local in inside}
    answer = {"namespace": "public/bun", "bundle": FIRST, "topicHashPositions": positions}
    one = {str(topic(inside[0])): positions[str(topic(inside[0]))]}
    url = f"GET {URL}/{FIRST}/topicHashPositions"
    await play(
        quartered,
        Step(url, 200, answer),
        Step(f"{url}?topics={topic(inside[0])}", 200, answer | {"topicHashPositions": one}),
        Step(f"{url}?topics={topic(outside[0])}", 200, answer | {"topicHashPositions": {}}),
        Step(f"{url}?topics=a:/b", 412, {"reason": "Topic name is not valid"}),
        Step(url.replace(FIRST, SECOND), 412, {"reason": f"{NOT_OWNED}public/bun/{SECOND}"}),
    )


async def test_hash_positions_of_partitions(quartered: Rest) -> None:
    await quartered.done("PUT", f"{TOPICS}/p/partitions", 8)
    found = []
    for bundle in ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff"):
        answer = await quartered.get(f"{URL}/{bundle}/topicHashPositions?topics={topic('p')}")
        found += list(answer["topicHashPositions"])
    assert sorted(found) == [f"{topic('p')}-partition-{index}" for index in range(8)]


async def test_a_bundle_is_split_at_given_positions(quartered: Rest) -> None:
    url = f"{URL}/0x40000000_0x80000000/split?splitAlgorithmName=specified_positions_divide"
    await play(
        quartered,
        Step(f"PUT {url}", 412, Reason("With specified_positions_divide split algorithm, splitBoundaries must not be")),
        Step(f"PUT {url}", 204, value=[0x50000000, 0x60000000, 0x40000000, 5, None]),
    )
    assert await boundaries(quartered) == QUARTERS  # as in Pulsar, a bundle without two topics stays whole
    for local in names_in("0x40000000_0x80000000", 2):
        await quartered.done("PUT", f"{TOPICS}/{local}")
    await quartered.done("PUT", url, [0x50000000, 0x60000000, 0x40000000, 5, None])
    assert await boundaries(quartered) == [*QUARTERS[:2], "0x50000000", "0x60000000", *QUARTERS[2:]]
    assert (await quartered.call("PUT", url, "x")).status == 400
    assert (await quartered.call("PUT", url, ["x"])).status == 400


async def test_a_namespace_has_no_more_bundles_than_a_broker_keeps(quartered: Rest) -> None:
    url = f"{URL}/{FIRST}/split?splitAlgorithmName=specified_positions_divide"
    for local in names_in(FIRST, 2):
        await quartered.done("PUT", f"{TOPICS}/{local}")
    assert (await quartered.refused("PUT", url, list(range(1, 70_000))))[0] == 412
    assert await boundaries(quartered) == QUARTERS


async def test_a_bundle_is_split_between_its_topics(quartered: Rest) -> None:
    url = f"{URL}/{FIRST}/split?splitAlgorithmName=topic_count_equally_divide"
    first, second, third = sorted(names_in(FIRST, 3), key=lambda local: hash_position(topic(local)))
    await quartered.done("PUT", f"{TOPICS}/{first}")
    await quartered.done("PUT", url)
    assert await boundaries(quartered) == QUARTERS  # one topic cannot be divided
    for local in (second, third):
        await quartered.done("PUT", f"{TOPICS}/{local}")
    await quartered.done("PUT", url)
    (_, split, *rest) = await boundaries(quartered)
    assert rest == QUARTERS[1:]
    assert hash_position(topic(first)) <= int(split, 16) <= hash_position(topic(second))


async def test_the_largest_bundle_is_split_by_name(quartered: Rest) -> None:
    for which in ("LARGEST", "HOT"):
        assert await quartered.refused("PUT", f"{URL}/{which}/split") == (404, f"Bundle range {which} not found")
    for local in names_in("0x80000000_0xc0000000", 2) + names_in(FIRST, 1):
        await quartered.done("PUT", f"{TOPICS}/{local}")
    await quartered.done("PUT", f"{URL}/LARGEST/split")
    assert await boundaries(quartered) == [*QUARTERS[:3], "0xa0000000", *QUARTERS[3:]]


@pytest.mark.serving(brokers=2)
async def test_the_owner_of_a_bundle_serves_its_parts(bed: Bed) -> None:
    rest, ownership = rest_of(bed), bed.broker.cluster.ownership
    await rest.done("PUT", URL)
    ownership.assign("public/bun", FIRST, bed.brokers[1])
    await rest.done("PUT", f"{URL}/{FIRST}/split")
    halves = ("0x00000000_0x20000000", "0x20000000_0x40000000")
    assert [ownership.owner_of("public/bun", half) for half in halves] == [bed.brokers[1]] * 2
    assert ownership.owner_of("public/bun", FIRST) is None
    await rest.done("PUT", f"{URL}/{halves[0]}/split?unload=true")
    assert ownership.owner_of("public/bun", "0x00000000_0x10000000") is None


async def test_clients_stay_while_their_bundle_is_split(rest: Rest, wire: Wire, bed: Bed) -> None:
    await rest.done("PUT", URL)
    await wire.producer(str(topic(names_in(FIRST, 1)[0])))
    await rest.done("PUT", f"{URL}/{FIRST}/split")
    await wire.quiet()
    assert len(list(bed.broker.loaded_topics())) == 1


async def test_a_bundle_is_deleted_when_it_is_empty_or_by_force(quartered: Rest, bed: Bed) -> None:
    unowned = {"reason": f"Failed to find ownership for ServiceUnit:public/bun/{FIRST}"}
    (local,) = names_in(FIRST, 1)
    await play(
        quartered,
        Step(f"DELETE {URL}/{FIRST}", 412, unowned),
        Step(f"PUT {TOPICS}/{local}", 204),
        Step(f"DELETE {URL}/{FIRST}", 409, {"reason": "Cannot delete non empty bundle"}),
        Step(f"DELETE {URL}/{FIRST}?force=true", 204),
        Step(f"DELETE {URL}/{FIRST}?force=true", 412, unowned),
    )
    assert bed.broker.topics.exists(topic(local))
