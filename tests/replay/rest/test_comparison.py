"""Comparison of answers: which differences count."""

from __future__ import annotations

from typing import Any

import pytest

from yardsticks.replay.rest.comparison import differences
from yardsticks.replay.rest.recording import Answer, Call, Varying


def call(golden: Answer, *, method: str = "GET", compared: bool = True, varies: Varying | None = None) -> Call:
    return Call("01-x", method, "/x", "/x", {}, None, "", golden, compared, varies, recorded=True)


def json(body: Any, status: int = 200, **more: Any) -> Answer:
    return Answer(status, body, **more)


@pytest.mark.parametrize(
    ("golden", "other"),
    [
        ({"a": 1, "b": "x"}, {"b": "x", "a": 1.0}),
        (["a", "b"], ["b", "a"]),
        ({"at": 1_795_266_897_531}, {"at": 1_795_266_999_999}),
        ({"at": "2026-11-21T13:15:00.913690494Z"}, {"at": "2027-01-02T03:04:05Z"}),
        ({"url": "http://localhost:8080/x"}, {"url": "http://127.0.0.1:49152/x"}),
        ({"producerName": "standalone-1-23"}, {"producerName": "standalone-0-4"}),
        ({"consumerName": "8f3a796744"}, {"consumerName": "0123456789"}),
        ({"ledgerId": 39, "read": "39:4"}, {"ledgerId": 0, "read": "0:4"}),
        ({"cursorLedger": 7, "ledgerId": 39}, {"cursorLedger": 3, "ledgerId": 12}),
        ({"reason": "at line 1, column: 5"}, {"reason": "at line 1, column: 1"}),
        ("", ""),
    ],
)
def test_values_of_a_single_run_are_not_compared(golden: Any, other: Any) -> None:
    assert differences(call(json(golden)), json(other)) == []


@pytest.mark.parametrize(
    ("golden", "other", "difference"),
    [
        ({"a": {"size": 1}}, {"a": {"size": 2}}, "a.size: 2, Pulsar 1"),
        ({"rate": 0.0}, {"rate": 0.5}, "rate: 0.5, Pulsar 0.0"),
        ({"a": 1}, {"a": "1"}, "a: '1', Pulsar 1"),
        ({"a": True}, {"a": 1}, "a: 1, Pulsar True"),
        ({"a": {"b": 1}}, {"a": {}}, "a: lacks b"),
        ({"a": 1}, {"a": 1, "c": 2}, ": has c, which Pulsar's has not"),
        ({"t/a": {"x": 1}}, {"t/b": {"x": 1}}, ": lacks t/a"),
        ([{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 3}], "[1].a: 3, Pulsar 2"),
        (["x"], [], ": [], Pulsar ['x']"),
        ("", {"a": 1}, "JSON {'a': 1}, Pulsar nothing"),
        ({"at": 1_795_266_897_531}, {"at": 0}, "at: 0, Pulsar 'TIME'"),
        ({"at": "2026-11-21T13:15:00Z"}, {"at": "1970-01-01T00:00:00Z"}, "at: '1970-01-01T00:00:00Z', Pulsar 'TIME'"),
        ({"ledgerId": 39}, {"ledgerId": -1}, "ledgerId: -1, Pulsar 'L0'"),
        ({"ledgerId": 39, "read": "39:4"}, {"ledgerId": 0, "read": "1:4"}, "read: 'L1:4', Pulsar 'L0:4'"),
        ({"reason": "no"}, {"reason": "not at all"}, "reason: 'not at all', Pulsar 'no'"),
    ],
)
def test_values_are_compared(golden: Any, other: Any, difference: str) -> None:
    assert difference in differences(call(json(golden)), json(other))


def test_every_value_that_differs_is_named() -> None:
    golden, other = {"a": 1, "b": [{"c": 2}]}, {"a": 2, "b": [{"c": 3}]}
    assert set(differences(call(json(golden)), json(other))) == {"a: 2, Pulsar 1", "b[0].c: 3, Pulsar 2"}


def test_another_status_is_the_only_difference() -> None:
    assert differences(call(json({"reason": "not valid"}, 412)), Answer(204)) == ["status 204, Pulsar 412"]
    assert differences(call(Answer(204)), json({"a": 1})) == ["status 200 {'a': 1}, Pulsar 204"]


def test_text_is_not_json() -> None:
    assert differences(call(Answer(200, "ok", plain=True)), json("ok")) == ["JSON 'ok', Pulsar text"]


def test_headers_and_content_type_are_compared() -> None:
    golden = json("", kept={"allow": "GET"}, content_type="text/plain")
    assert differences(call(golden), json("", kept={"allow": "PUT"}, content_type="text/plain")) == [
        "header.allow: 'PUT', Pulsar 'GET'"
    ]
    assert differences(call(golden), json("", content_type="text/html", kept={"allow": "GET"})) == [
        "Content-Type: 'text/html', Pulsar 'text/plain'"
    ]


def test_of_a_page_or_a_cut_answer_only_the_status_counts() -> None:
    assert differences(call(Answer(404), compared=False), json({"servlet": "x"}, 404)) == []
    assert differences(call(Answer(200), method="HEAD"), json("x")) == []


def test_of_what_pulsar_itself_varies_in_no_more_counts_than_it_repeats() -> None:
    golden, other = json({"reason": "no"}, 404), json({"reason": "not at all"}, 404)
    assert differences(call(golden, varies="texts"), other) == []
    assert differences(call(golden, varies="texts"), json({"reason": "no", "a": 1}, 404)) != []
    assert differences(call(golden, varies="answer"), json({"a": 1}, 404)) == []
    assert differences(call(golden, varies="answer"), json({"a": 1}, 405)) == ["status 405 {'a': 1}, Pulsar 404"]
