"""Choice of a partition for a message."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pulsarium.client import Message
from pulsarium.client.errors import InvalidConfiguration
from pulsarium.client.producer.draft import draft
from pulsarium.client.producer.options import HashingScheme, PartitionsRoutingMode, ProducerOptions
from pulsarium.client.producer.router import Router, hash_of


class Target:
    def __init__(self) -> None:
        self.has_batch = False


def routing(**options: Any) -> tuple[Router, list[Target]]:
    return Router("t", ProducerOptions("t", **options)), [Target() for _ in range(3)]


@pytest.mark.parametrize(
    ("key", "java", "murmur"),
    [
        ("", 0, 0),
        ("a", 97, 1009084850),
        ("hello", 99162322, 613153351),
        ("ä", 228, 2117259732),
        ("key-0123456789", 788967987, 2062469008),  # exceeds 2**31 during the calculation
        ("😀", 1772899, 1051995898),  # two UTF-16 units
    ],
)
def test_hashes_of_keys_are_javas(key: str, java: int, murmur: int) -> None:
    """The numbers come from JavaStringHash and Murmur3Hash32 of the Java client 4.2.4."""
    assert hash_of(key, HashingScheme.JavaStringHash) == java
    assert hash_of(key, HashingScheme.Murmur3_32Hash) == murmur


def test_messages_with_the_same_key_stay_together() -> None:
    for scheme in HashingScheme:
        for mode in (PartitionsRoutingMode.RoundRobinDistribution, PartitionsRoutingMode.UseSinglePartition):
            router, targets = routing(hashing_scheme=scheme, message_routing_mode=mode)
            for key in map(str, range(20)):
                chosen = {router.choose(draft(b"", partition_key=key), targets) for _ in range(3)}
                assert chosen == {hash_of(key, scheme) % 3}


def test_an_empty_key_is_a_key() -> None:
    router, targets = routing()
    assert {router.choose(draft(b"", partition_key=""), targets) for _ in range(9)} == {0}


def test_without_a_key_each_in_turn() -> None:
    router, targets = routing()
    chosen = [router.choose(draft(b""), targets) for _ in range(9)]
    assert Counter(chosen) == {0: 3, 1: 3, 2: 3}
    assert chosen[:3] * 3 == chosen


def test_a_batch_stays_together() -> None:
    router, targets = routing()
    first = router.choose(draft(b""), targets)
    targets[first].has_batch = True
    assert {router.choose(draft(b""), targets) for _ in range(5)} == {first}
    targets[first].has_batch = False
    assert router.choose(draft(b""), targets) == (first + 1) % 3


def test_not_every_producer_begins_with_the_same() -> None:
    first = set()
    for _ in range(100):
        router, targets = routing()
        first.add(router.choose(draft(b""), targets))
    assert first == {0, 1, 2}


def test_single_partition_routing_keeps_to_one() -> None:
    router, targets = routing(message_routing_mode=PartitionsRoutingMode.UseSinglePartition)
    assert len({router.choose(draft(b""), targets) for _ in range(9)}) == 1


def custom(router: Any) -> dict[str, Any]:
    return {"message_routing_mode": PartitionsRoutingMode.CustomPartition, "message_router": router}


def test_a_router_of_ones_own() -> None:
    seen: list[tuple[Message, int]] = []

    def choose(message: Message, partitions: int) -> int:
        seen.append((message, partitions))
        return int(message.properties()["to"])

    router, targets = routing(**custom(choose))
    message = draft(b"content", partition_key="k", properties={"to": "2"}, event_timestamp=5)
    assert router.choose(message, targets) == 2
    ((given, partitions),) = seen
    assert (given.data(), given.partition_key(), given.event_timestamp(), partitions) == (b"content", "k", 5, 3)


@pytest.mark.parametrize("answer", [-1, 3])
def test_a_router_that_names_no_partition(answer: int) -> None:
    router, targets = routing(**custom(lambda message, partitions: answer))
    with pytest.raises(InvalidConfiguration, match=f"chose partition {answer} of 3"):
        router.choose(draft(b""), targets)
