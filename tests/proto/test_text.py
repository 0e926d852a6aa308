"""Suggestions for misspelled names."""

from __future__ import annotations

import pytest

from pulsarium.proto.text import did_you_mean


@pytest.mark.parametrize(
    ("name", "said"),
    [("SNED", "did you mean SEND?"), ("ack", "did you mean ACK?"), ("senx", "did you mean SEND?"), ("FROBNICATE", "")],
)
def test_names_that_look_alike_are_suggested(name: str, said: str) -> None:
    assert did_you_mean(name, ["SEND", "ACK", "FLOW"]) == said
