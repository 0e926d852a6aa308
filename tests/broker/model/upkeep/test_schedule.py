"""Periodic checks of all topics: other tasks run between two topics, and may change the topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.broker.model import upkeep
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.topics import Topics
from pulsarium.broker.model.upkeep import check_all, delete_inactive
from pulsarium.proto.topic_name import TopicName
from tests.broker.model.upkeep.policed import patient

NAMES = [TopicName.parse(f"t{number}") for number in range(4)]
Note = Callable[[Topic], None]


def with_migration(topics: Topics, note: Note, patched: pytest.MonkeyPatch) -> Iterator[None]:
    patched.setattr(topics.migration, "check", note)
    return topics.migration.check_all()


def with_check(topics: Topics, note: Note, patched: pytest.MonkeyPatch) -> Iterator[None]:
    return check_all(topics, note, next(iter(topics.loaded.values())).stores.clock)


def with_inactivity(topics: Topics, note: Note, patched: pytest.MonkeyPatch) -> Iterator[None]:
    patched.setattr(upkeep, "may_go", note)  # the note returns None, so that no topic is deleted
    return delete_inactive(Config(), topics, next(iter(topics.loaded.values())).stores.clock)


@pytest.mark.parametrize("begin", [with_check, with_inactivity, with_migration])
async def test_topics_that_went_meanwhile_are_passed_over(
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    begin: Callable[[Topics, Note, pytest.MonkeyPatch], Iterator[None]],
) -> None:
    async with patient() as bed:
        topics, checked = bed.broker.topics, []
        for name in NAMES:
            topics.create(name)
        steps = begin(topics, lambda topic: checked.append(topic.name), monkeypatch)
        next(steps)
        topics.delete(NAMES[0], force=True)
        topics.delete(NAMES[2], force=True)
        assert len(list(steps)) == 3
        assert checked == [NAMES[0], NAMES[1], NAMES[3]]


async def test_the_fault_of_one_topic_does_not_spare_the_others(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with patient() as bed:
        checked: list[TopicName] = []
        for name in NAMES:
            bed.broker.topics.create(name)

        def check(topic: Topic) -> None:
            checked.append(topic.name)
            if topic.name == NAMES[1]:
                raise ValueError("broken")

        assert len(list(check_all(bed.broker.topics, check, bed.broker.clock))) == len(NAMES)
        assert checked == NAMES
        assert "broken" in caplog.text
