"""What counts as the same answer."""

from __future__ import annotations

from typing import Any

import pytest

from .comparison import difference
from .recording import Answer, Call


def call(golden: Answer, *, method: str = "GET", compared: bool = True) -> Call:
    return Call("01-x", method, "/x", "/x", {}, None, "", golden, compared, None, recorded=True)


def json(body: Any, status: int = 200, **more: Any) -> Answer:
    return Answer(status, body, **more)


@pytest.mark.parametrize(
    ("golden", "other"),
    [
        ({"a": 1, "b": "x"}, {"b": "y", "a": 2.5}),
        ({"reason": "no"}, {"reason": "not at all"}),
        ([{"a": 1}], [{"a": 2}, {"other": 3}]),
        ({"persistent://t/n/a": {"x": 1}}, {"persistent://t/n/b": {"x": 2}, "persistent://t/n/c": {}}),
        ("", ""),
    ],
)
def test_values_are_free(golden: Any, other: Any) -> None:
    assert difference(call(json(golden)), json(other)) == ""


@pytest.mark.parametrize(
    ("golden", "other", "why"),
    [
        ({"a": 1}, {"a": "1"}, "a: 'str', Pulsar 'number'"),
        ({"a": True}, {"a": 1}, "a: 'number', Pulsar 'bool'"),
        ({"a": {"b": 1}}, {"a": {}}, "a: lacks b"),
        ({"a": 1}, {"a": 1, "c": 2}, "has c, which Pulsar's has not"),
        ([{"a": 1}], [{"a": None}], "[0]: a: 'NoneType', Pulsar 'number'"),
        (["x"], [], "[], Pulsar ['str']"),
        ("", {"a": 1}, "JSON, Pulsar nothing"),
    ],
)
def test_keys_and_types_are_not(golden: Any, other: Any, why: str) -> None:
    assert difference(call(json(golden)), json(other)) == why


def test_the_status_comes_first_and_with_the_reasons() -> None:
    golden = json({"reason": "not valid"}, 412)
    assert difference(call(golden), Answer(204)) == "status 204, Pulsar 412 (-; Pulsar: not valid)"
    assert difference(call(Answer(204)), Answer(404)) == "status 404, Pulsar 204"


def test_text_is_not_json() -> None:
    assert difference(call(Answer(200, "ok", plain=True)), json("ok")) == "JSON, Pulsar text"


def test_of_a_page_or_a_cut_answer_only_the_status_counts() -> None:
    assert difference(call(Answer(404), compared=False), json({"servlet": "x"}, 404)) == ""
    assert difference(call(Answer(200), method="HEAD"), json("x")) == ""


def test_headers_must_be_there() -> None:
    golden = json("", kept={"allow": "GET"})
    assert difference(call(golden), json("", kept={"allow": "PUT"})) == ""
    assert difference(call(golden), json("")) == "header lacks allow"


def test_values_compares_what_is_not_of_one_run() -> None:
    golden = call(json({"name": "a", "msgThroughputIn": 1.5, "count": 3}, content_type="application/json"))
    same = json({"name": "a", "msgThroughputIn": 9.5, "count": 3}, content_type="application/json")
    assert difference(golden, same, "values") == ""
    assert difference(golden, json({**same.body, "count": 4}), "values") == "count: 4, Pulsar 3"
    assert difference(golden, json(same.body), "values") == "Content-Type '', Pulsar 'application/json'"


def test_names_in_a_list_have_no_order() -> None:
    golden = call(json(["a", "b"]))
    assert difference(golden, json(["b", "a"]), "values") == ""
    assert difference(golden, json(["b", "c"]), "values") == "[0]: 'b', Pulsar 'a'"


def test_texts_compares_the_reasons() -> None:
    golden = call(json({"reason": "no"}, 404))
    assert difference(golden, json({"reason": "not at all"}, 404), "values") == ""
    assert difference(golden, json({"reason": "not at all"}, 404), "texts") == "reason 'not at all', Pulsar 'no'"
