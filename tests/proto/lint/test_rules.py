"""The rules find what was planted, and nothing where nothing is wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.proto.capture import Record
from pulsarium.proto.commands import Direction
from pulsarium.proto.lint.checker import Checker
from pulsarium.proto.lint.rule import RULES
from pulsarium.proto.lint.state import Deliveries

from .planted import FAULT_OF, PLANTED, conforming, plant
from .talk import Talk
from .transcripts import complete, records

# Keep-alive and a refresh of credentials that the recording client left unanswered, as its scenarios want.
SILENT_CLIENTS = {"029": 1, "049": 1, "127": 3, "143": 1, "150": 1}


def broken(some: list[Record]) -> list[tuple[int, str, Direction]]:
    """(connection, rule, whose fault) of everything that is wrong with interleaved connections."""
    checkers: dict[int, Checker] = {}
    deliveries = Deliveries()
    found = []
    for record in some:
        checker = checkers.setdefault(record.connection, Checker(deliveries))
        found += [(record.connection, each.rule.name, each.side) for each in checker.feed(record).violations]
    return found


def test_each_rule_has_a_talk_that_breaks_it() -> None:
    assert PLANTED.keys() == RULES.keys() == FAULT_OF.keys()


@pytest.mark.parametrize("name", PLANTED)
def test_what_was_planted_is_found(name: str) -> None:
    assert broken(plant(name, Talk()).records) == [(0, name, FAULT_OF[name])]


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    talk = Talk()
    conforming(talk)
    talk.close()
    assert broken(talk.records) == []


@pytest.mark.parametrize("name", PLANTED)
def test_a_connection_that_was_not_captured_from_its_opening_on_is_not_judged(name: str) -> None:
    assert broken(plant(name, Talk(opened=False)).records) == []


def test_a_connection_that_broke_owes_no_answers() -> None:
    talk = Talk()
    talk.greet()
    talk.client("LOOKUP", topic="t", request_id=1)
    talk.close(after_ms=5000, reason="reset by peer")
    assert broken(talk.records) == []


@given(st.lists(st.sampled_from([*PLANTED, ""]), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_among_others_it_is_found_too(names: list[str], random: object) -> None:
    """Connections in any order of their records; nothing of one is blamed on another."""
    talks = [plant(name, Talk(at)) if name else Talk(at) for at, name in enumerate(names)]
    for name, talk in zip(names, talks, strict=True):
        if not name:
            conforming(talk)
    left = [list(talk.records) for talk in talks]
    mixed: list[Record] = []
    while any(left):
        mixed.append(random.choice([some for some in left if some]).pop(0))  # type: ignore[attr-defined]
    wanted = Counter((at, name) for at, name in enumerate(names) if name)
    found = Counter((at, name) for at, name, _ in broken(mixed))
    # An entry that one connection is sent may be acknowledged on another.
    assert found - wanted == Counter()
    assert all(name == "ack-not-delivered" for _, name in wanted - found)


@pytest.mark.parametrize("path", complete(), ids=lambda path: path.stem)
def test_a_real_broker_breaks_no_rule(path: Path) -> None:
    faults = [each for each in broken(list(records(path))) if each[2] is Direction.BROKER]
    assert faults == []


@pytest.mark.parametrize("path", [each for each in complete() if each.stem[:3] in SILENT_CLIENTS], ids=lambda p: p.stem)
def test_clients_that_do_not_answer_are_found(path: Path) -> None:
    faults = [name for _, name, side in broken(list(records(path))) if side is Direction.CLIENT]
    assert faults.count("unanswered-request") == SILENT_CLIENTS[path.stem[:3]]
