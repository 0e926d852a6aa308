"""Ownership of namespace bundles by brokers."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.config import Config
from pulsarium.broker.model.errors import MetadataError
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.namespace.ownership import FoundOwner, Ownership
from pulsarium.broker.storage.interface import Done
from pulsarium.proto.topic_name import TopicName


@dataclass(eq=False)
class Member:
    name: str
    alive: bool = True


class Nowhere:
    def store(self, path: str, value: bytes | None) -> None: ...

    def after_commit(self, done: Done) -> None: ...


TOPICS = [TopicName.parse(f"t{number}") for number in range(8)]


def ownership(members: int) -> Ownership[Member]:
    metadata = Metadata(Nowhere(), "standalone")
    metadata.recover({})
    made: Ownership[Member] = Ownership(Config(), metadata)
    made.members += [Member(f"b{number}") for number in range(members)]
    return made


def test_one_broker_alone_serves_every_bundle() -> None:
    owned = ownership(1)
    assert owned.find(owned.members[0], TOPICS[0], authoritative=False) == FoundOwner(owned.members[0])
    assert owned.owner(TOPICS[0]) is owned.members[0]


def test_nobody_serves_a_namespace_that_there_is_not() -> None:
    owned, name = ownership(2), TopicName.parse("persistent://no/where/t")
    assert owned.owner(name) is None
    assert owned.find(owned.members[0], name, authoritative=True) is None


def test_only_the_leader_decides_who_serves_a_bundle() -> None:
    owned = ownership(3)
    leader, second, _ = owned.members
    assert owned.find(second, TOPICS[0], authoritative=False) == FoundOwner(leader, redirect=True, authoritative=False)
    assert owned.owner(TOPICS[0]) is None
    found = owned.find(leader, TOPICS[0], authoritative=False)
    assert found == FoundOwner(leader)  # the first of the least loaded brokers


def test_whom_the_leader_chose_serves() -> None:
    owned = ownership(2)
    leader, second = owned.members
    owned.assign("public/default", "another", leader)
    assert owned.find(leader, TOPICS[0], authoritative=False) == FoundOwner(second, redirect=True)
    assert owned.owner(TOPICS[0]) is None  # the second broker takes the bundle at the first lookup
    assert owned.find(second, TOPICS[0], authoritative=True) == FoundOwner(second)
    assert owned.owner(TOPICS[0]) is second


@pytest.mark.parametrize("members", [1, 2])
def test_a_lookup_of_a_bundle_being_unloaded_is_told_to_come_back(members: int) -> None:
    owned = ownership(members)
    first, bundle = owned.members[0], owned.bundle_of(TOPICS[0])
    assert bundle is not None
    owned.assign("public/default", bundle, first)
    with owned.unloading([("public/default", bundle)]):
        assert owned.owner(TOPICS[0]) is None
        with pytest.raises(MetadataError, match=f"public/default/{bundle} is being unloaded"):
            owned.find(first, TOPICS[0], authoritative=True)
    assert owned.find(first, TOPICS[0], authoritative=True) == FoundOwner(first)


def test_a_leader_leads_while_it_is_there() -> None:
    owned = ownership(2)
    first, second = owned.members
    assert owned.leader is first
    first.alive = False
    assert owned.leader is second
    first.alive = True
    assert owned.leader is second


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(TOPICS)), max_size=30))
def test_following_redirects_ends_at_the_one_owner(asked: list[tuple[int, TopicName]]) -> None:
    owned = ownership(3)
    for index, topic in asked:
        broker, authoritative = owned.members[index], False
        hops = 0
        while (found := owned.find(broker, topic, authoritative=authoritative)) is not None and found.redirect:
            broker, authoritative, hops = found.broker, found.authoritative, hops + 1
            assert hops < 3
        assert found is not None
        assert found.broker is owned.owner(topic)
    counts = [len(owned.bundles_of(member)) for member in owned.members]
    assert max(counts) - min(counts) <= 1
