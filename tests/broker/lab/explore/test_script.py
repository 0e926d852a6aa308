"""Decisions in the form of text."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.lab.explore.kinds import check
from pulsarium.broker.lab.explore.script import Decision, ScriptError, parse, read
from tests.broker.lab.explore.scripts import scripts


@given(scripts)
def test_a_script_is_read_as_it_was_written(script: tuple[Decision, ...]) -> None:
    assert read(map(str, script)) == script


def test_comments_and_empty_lines_of_a_script_are_ignored() -> None:
    lines = ["# found on a Tuesday", "", "receipt-lost SEND 3  # the third order", "clock-jump FLOW 0 60"]
    assert read(lines) == (Decision("receipt-lost", "SEND", 3), Decision("clock-jump", "FLOW", 0, 60.0))


@pytest.mark.parametrize(
    "text",
    ["receipt-lost SEND", "receipt-lost SEND three", "receipt-lost SEND -1", "a B 1 2 3", "a B 1 nan", "a B 1 -2"],
)
def test_a_line_that_is_no_decision_is_named(text: str) -> None:
    with pytest.raises(ScriptError, match=text):
        parse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("receipt-lots SEND 0", "there is no kind 'receipt-lots'"),
        ("receipt-lost ACK 0", "receipt-lost is not chosen at ACK: use SEND"),
        ("receipt-lost SEND 0 5", "receipt-lost takes no value"),
    ],
)
def test_a_decision_that_no_broker_can_make_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ScriptError, match=reason):
        check((parse(text),))


@given(st.text(max_size=30))
def test_any_text_is_a_decision_or_an_error(text: str) -> None:
    with suppress(ScriptError):
        decision = parse(text)
        assert parse(str(decision))[:3] == decision[:3]
