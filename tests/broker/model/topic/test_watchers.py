"""The lists of persistent topics: each topic that comes or goes changes them, and they are not made again."""

from __future__ import annotations

from collections.abc import Generator
from random import Random
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.topic import patterns
from pulsarium.broker.model.topic import watchers as watchers_module
from pulsarium.broker.model.topic.java_regex import NotEvaluable
from pulsarium.broker.model.topic.patterns import TopicPattern
from pulsarium.broker.model.topic.watchers import MOST_KEPT, Listing, Watchers, hash_of_names
from pulsarium.proto.topic_name import TopicName
from tests.broker.steps import steps_of

T = TypeVar("T")

NAMESPACE = "public/default"


def name_of(local: str) -> TopicName:
    return TopicName.parse(f"persistent://{NAMESPACE}/{local}")


def end_of(steps: Generator[None, None, T]) -> T:
    """Go through all steps, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def selected(listing: Listing, pattern: str) -> list[str]:
    return [*end_of(listing.select(pattern, "RE2J_WITH_JDK_FALLBACK")).names]


@pytest.fixture
def watchers() -> Watchers:
    made = Watchers()
    for number in range(500):
        made.created(name_of(f"t{number}"))
    return made


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["b", "a", "c1", "c2", "__change_events", "c-partition-0"]))))
def test_the_lists_are_those_that_would_be_made_anew(changes: list[tuple[bool, str]]) -> None:
    listing, there = Listing(), set[str]()
    selected(listing, "public/default/c.*")
    for created, local in changes:
        name = name_of(local)
        if created:
            listing.created(name)
            there.add(str(name))
        else:
            listing.deleted(str(name))
            there.discard(str(name))
        visible = {each for each in there if not each.endswith("__change_events")}
        assert [*listing.names] == sorted(there)
        assert ([*listing.visible], listing.visible.hash) == (sorted(visible), hash_of_names(visible))
        assert selected(listing, "public/default/c.*") == [each for each in sorted(visible) if "/c" in each]


def test_a_list_that_is_known_takes_no_step_for_each_topic(watchers: Watchers) -> None:
    def ask() -> None:
        listing = watchers.listing(NAMESPACE)
        assert listing.visible.hash
        assert len(selected(listing, "public/default/t.*")) == 500

    ask()
    assert steps_of(ask) < 200
    watchers.created(name_of("s"))
    watchers.deleted(name_of("s"))
    assert steps_of(ask) < 200


def test_a_pattern_is_matched_with_a_step_for_each_topic(watchers: Watchers) -> None:
    steps = watchers.listing(NAMESPACE).select("public/default/t1.*", "RE2J")
    assert len([*steps]) == 500


def test_topics_that_come_and_go_between_the_steps_count(watchers: Watchers) -> None:
    listing = watchers.listing(NAMESPACE)
    steps = listing.select("public/default/t1?", "RE2J")
    next(steps)
    watchers.created(name_of("t"))
    watchers.deleted(name_of("t1"))
    assert [*end_of(steps).names] == [str(name_of("t"))]


def test_a_watch_of_a_namespace_whose_first_topic_comes_meanwhile_has_the_topic() -> None:
    watchers, told = Watchers(), list[list[str]]()
    steps = watchers.watch(NAMESPACE, "public/default/.*", "RE2J", lambda new, deleted, topics_hash: told.append(new))
    watchers.created(name_of("a"))
    watcher = end_of(steps)
    assert [*watcher.matching.names] == [str(name_of("a"))]
    watchers.created(name_of("b"))
    assert told == [[str(name_of("b"))]]


def test_the_latest_patterns_are_kept_and_those_that_are_watched(
    watchers: Watchers, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_of(watchers.watch(NAMESPACE, "watched", "RE2J", lambda new, deleted, topics_hash: None))
    listing, random = watchers.listing(NAMESPACE), Random(1)
    asked = [str(random.randrange(10**6)) for _ in range(MOST_KEPT + 3)]
    for pattern in asked:
        selected(listing, pattern)
    made = list[str]()

    def noted(pattern: str, implementation: str) -> TopicPattern:
        made.append(pattern)
        return TopicPattern(pattern, implementation)

    monkeypatch.setattr(watchers_module, "TopicPattern", noted)
    for pattern in ["watched", *asked[3:], *asked[:3]]:
        selected(listing, pattern)
    assert made == asked[:3]


def test_a_name_may_not_take_all_the_work_of_a_request(watchers: Watchers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work for one name cannot be interrupted."""
    monkeypatch.setattr(patterns, "MOST_WORK_OF_A_NAME", 10)
    with pytest.raises(NotEvaluable):
        selected(watchers.listing(NAMESPACE), "public/default/(?=(t|1)*x).*")


def test_a_namespace_without_topics_and_watchers_is_forgotten() -> None:
    watchers = Watchers()
    watchers.created(name_of("a"))
    watcher = end_of(watchers.watch(NAMESPACE, "x", "RE2J", lambda new, deleted, topics_hash: None))
    watchers.deleted(name_of("a"))
    assert watchers._listings
    watchers.remove(watcher)
    assert not watchers._listings
    watchers.listing("public/other")
    assert not watchers._listings
