"""The order in which consumers take turns, compared with a walk along a list."""

from __future__ import annotations

from dataclasses import dataclass
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pulsarium.broker.model.dispatch import sharing
from pulsarium.broker.model.dispatch.sharing import Rotation
from tests.broker.steps import steps_of


@dataclass(eq=False)
class Member:
    name: int
    priority_level: int
    can_receive: bool = False


class Walked:
    """A rotation as in Pulsar: an index into each priority level, which moves only past the chosen consumer."""

    def __init__(self) -> None:
        self.levels: dict[int, list[Member]] = {}
        self.following: dict[int, int] = {}

    def add(self, member: Member) -> None:
        self.levels.setdefault(member.priority_level, []).append(member)

    def remove(self, member: Member) -> None:
        level = self.levels[member.priority_level]
        level.remove(member)
        if not level:
            del self.levels[member.priority_level]
            self.following.pop(member.priority_level, None)

    def next(self) -> Member | None:
        for number in sorted(self.levels):
            level = self.levels[number]
            start = self.following.get(number, 0)
            for index in [*range(start, len(level)), *range(min(start, len(level)))]:
                member: Member = level[index]
                if member.can_receive:
                    self.following[number] = index + 1
                    return member
        return None


steps = st.lists(st.tuples(st.sampled_from(["join", "leave", "able", "unable", "next", "next"]), st.integers(0, 99)))
FAILED_SEARCH = [*[("join", number) for number in (1, 0, 0)], ("able", 1), ("next", 0), ("unable", 1), ("next", 0)]
"""The index of level 0 is 1 afterwards: a search that finds nobody does not move it."""


@pytest.mark.req("B-04")
@pytest.mark.parametrize("most_free", [0, sharing.MOST_FREE])
@example([*FAILED_SEARCH, ("able", 1), ("able", 2), ("next", 0)])
@given(steps)
def test_turns_are_taken_as_in_a_list(most_free: int, steps: list[tuple[str, int]]) -> None:
    with patch.object(sharing, "MOST_FREE", most_free):  # slots of consumers that left are given again, soon or late
        take_turns(steps)


def take_turns(steps: list[tuple[str, int]]) -> None:
    made, walked, members = Rotation(), Walked(), list[Member]()
    for step, number in steps:
        member = members[number % len(members)] if members else None
        if step == "join":
            member = Member(len(members), number % 3)
            members.append(member)
            made.add(member)  # type: ignore[arg-type]
            walked.add(member)
        elif step == "next":
            found: object = made.next()
            assert found is walked.next()
        elif member is None:
            continue
        elif step == "leave":
            members.remove(member)
            made.remove(member)  # type: ignore[arg-type]
            walked.remove(member)
        else:
            member.can_receive = step == "able"
            if member.can_receive:
                made.ready(member)  # type: ignore[arg-type]
        assert len(made) == len(members)
        assert [*made] == sorted(members, key=lambda each: each.priority_level)


def test_consumers_leave_without_a_step_for_each_other() -> None:
    made, members = Rotation(), [Member(number, 0) for number in range(2000)]
    for member in members:
        made.add(member)  # type: ignore[arg-type]

    def leave() -> None:
        for member in members:
            made.remove(member)  # type: ignore[arg-type]

    assert steps_of(leave) < 40 * len(members)
    assert not made
