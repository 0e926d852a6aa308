"""Answers in pieces."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker import slices
from pulsarium.broker.http.reply import AT_ONCE, Reply, Written, gathered, json_bytes, json_pieces, json_reply
from tests.broker.passes import passes_of_the_loop

SMALL = {"name": "a", "list": [], "object": {"é": None}}
LARGE: list[Any] = [
    list(range(5 * AT_ONCE)),
    {str(number): SMALL for number in range(AT_ONCE)},
    {number: [number] for number in range(AT_ONCE)},
    {"some": [SMALL], "of": {"all": [{"deep": [SMALL] * AT_ONCE}, 1, [2]]}, "": {}},
    [[SMALL] * AT_ONCE, [], SMALL, [SMALL] * AT_ONCE],
]


@pytest.mark.parametrize("value", LARGE)
def test_pieces_are_what_json_is(value: Any) -> None:
    pieces = [*json_pieces(value)]
    assert b"".join(pieces) == json_bytes(value)
    assert len(pieces) > 3
    assert max(map(len, pieces)) < 40 * AT_ONCE


@pytest.mark.parametrize("value", [{}, [], SMALL, "text", None, 1])
def test_a_short_answer_is_whole(value: Any) -> None:
    assert json_reply(value) == Reply(200, json_bytes(value), "application/json")


def test_a_list_may_grow_between_two_pieces() -> None:
    value = {"list": [0] * 3 * AT_ONCE}
    pieces = json_pieces(value)
    begin = next(pieces)
    value["list"].append(1)
    value["more"] = []
    assert b"".join([begin, *pieces]) == json_bytes({"list": [0] * 3 * AT_ONCE + [1]})


def test_an_object_is_written_member_by_member() -> None:
    written, inner = Written(), Written()
    inner["x"] = [1]
    members: dict[str, Any] = {"small": SMALL, "large": LARGE[0], "inner": inner, "empty": Written()}
    for name, value in members.items():
        written[name] = value
    whole = json_bytes({"small": SMALL, "large": LARGE[0], "inner": {"x": [1]}, "empty": {}})
    assert b"".join(json_pieces({"it": written, "is": 1})) == b'{"it":' + whole + b',"is":1}'


async def test_others_have_their_turn_between_two_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE", 0)
    pieces = [*json_pieces(LARGE[0])]
    with passes_of_the_loop() as passes:
        assert b"".join(await gathered(pieces)) == json_bytes(LARGE[0])
    assert passes.number >= len(pieces)
