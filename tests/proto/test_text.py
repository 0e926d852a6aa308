"""Suggestions for misspelled names, and text from outside on one line."""

from __future__ import annotations

import pytest

from pulsarium.proto.text import did_you_mean, printable


@pytest.mark.parametrize(
    ("name", "said"),
    [("SNED", "did you mean SEND?"), ("ack", "did you mean ACK?"), ("senx", "did you mean SEND?"), ("FROBNICATE", "")],
)
def test_names_that_look_alike_are_suggested(name: str, said: str) -> None:
    assert did_you_mean(name, ["SEND", "ACK", "FLOW"]) == said


def test_unprintable_characters_have_escapes_and_others_stay() -> None:
    assert printable("ü\n\t\x1b\u202e€") == "ü\\n\\t\\x1b\\u202e€"
    assert printable("a\nb\rc", keep="\n") == "a\nb\\rc"
