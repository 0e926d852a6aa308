"""The list of known differences, and whether each still exists."""

from __future__ import annotations

from yardsticks.replay.rest.excuses import Absence, Excuse, Excuses, absent_calls, undocumented
from yardsticks.replay.rest.player import Played
from yardsticks.replay.rest.recording import Answer, Call, Varying
from yardsticks.replay.rest.report import absences, judge, summary, table, unexcused


def call(path: str, *, method: str = "GET", varies: Varying | None = None, status: int = 200) -> Call:
    golden = Answer(status, {"a": 1})
    return Call("01-x", method, path, path, {}, None, "", golden, compared=True, varies=varies, recorded=True)


def played(path: str, answer: Answer, varies: Varying | None = None) -> Played:
    return Played(call(path, varies=varies), answer, 0.002)


TENANT = "/admin/v2/tenants/t"
EQUAL = Answer(200, {"a": 1})
WRONG = Answer(200, {"a": 2})
EXCUSES = Excuses(
    [
        Excuse("because", (f"GET {TENANT}: a: 2, Pulsar 1",)),
        Excuse("by chance", like=(r"GET /x: a: \d, Pulsar 1",), ours=False),
    ],
    [Absence("GET /admin/v2/nothing", "not here")],
)


def test_unequal_calls_are_counted_by_resource() -> None:
    findings = judge([played(TENANT, EQUAL), played("/lookup/v2/x", Answer(404))], [call("/metrics")])
    assert table(findings, []) == (
        "    0 of     1  lookup\n    0 of     0  other  (1 calls of absent routes)\n    1 of     1  tenants"
    )
    assert table(findings, ["tenants"]) == "    1 of     1  tenants"
    assert findings.share == 50
    assert (
        summary(findings, ["x"], 3) == "1 of 2 calls equal (50.0%), half of them within 2.0 ms, 3 s; NOT AS LISTED: 1"
    )


def test_values_on_which_recordings_disagree_do_not_count() -> None:
    levels: tuple[Varying | None, ...] = ("status", "answer", "texts", None)
    findings = [judge([played(TENANT, WRONG, varies)], []) for varies in levels]
    assert [(len(each.verdicts), len(each.unequal)) for each in findings] == [(0, 0), (1, 0), (1, 1), (1, 1)]


def test_a_listed_difference_is_excused_once_with_its_values() -> None:
    once = judge([played(TENANT, WRONG)], [])
    assert unexcused(once, EXCUSES) == []
    assert EXCUSES.idle(once.differences) == []
    twice = judge([played(TENANT, WRONG)] * 2, [])
    assert unexcused(twice, EXCUSES) == [f"GET {TENANT}: a: 2, Pulsar 1"]
    otherwise = judge([played(TENANT, Answer(200, {"a": 3}))], [])
    assert unexcused(otherwise, EXCUSES) == [f"GET {TENANT}: a: 3, Pulsar 1"]


def test_a_listed_difference_that_is_none_is_told() -> None:
    assert EXCUSES.idle(judge([played(TENANT, EQUAL)], []).differences) == [f"GET {TENANT}: a: 2, Pulsar 1"]


def test_values_of_chance_are_excused_by_their_pattern() -> None:
    assert unexcused(judge([played("/x", WRONG), played("/x", Answer(200, {"a": 3}))], []), EXCUSES) == []
    assert unexcused(judge([played("/x", Answer(200, {"a": "3"}))], []), EXCUSES) == ["GET /x: a: '3', Pulsar 1"]
    assert EXCUSES.reason_of("GET /x: a: 7, Pulsar 1") == "by chance"


def test_an_unlisted_difference_is_not_excused() -> None:
    findings = judge([played("/lookup/v2/x", Answer(404))], [call("/admin/v2/tenants")])
    assert unexcused(findings, Excuses([], EXCUSES.absent)) == [
        "GET /lookup/v2/x: status 404, Pulsar 200",
        "no reason is given for the absent GET /admin/v2/tenants",
    ]


def test_absent_routes_are_told_with_their_reasons() -> None:
    findings = judge([], [call("/admin/v2/nothing"), call("/admin/v2/nothing")])
    assert absences(findings, EXCUSES) == "    2 calls left out: not here"


def test_a_route_is_absent_when_pulsar_has_it_and_this_broker_has_not() -> None:
    packages = "/admin/v3/packages/{type}/{tenant}/{namespace}"
    calls = [call(packages), call(packages, method="PATCH"), call("/admin/v2/tenants"), call("/no/such/path")]
    assert absent_calls(calls) == [calls[0]]


def test_reasons_stand_in_the_page_of_differences() -> None:
    assert undocumented(EXCUSES, "x because y\nnot\n  here") == []
    assert undocumented(EXCUSES, "because") == ["not here"]  # the page needs no reasons of the replay
