"""What is listed as differing, and whether it does."""

from __future__ import annotations

from .comparison import difference
from .excuses import Absence, Excuse, Excuses, absent_calls, undocumented
from .player import Played
from .recording import Answer, Call, Level
from .report import absences, idle, judge, summary, table, unexcused


def call(path: str, *, method: str = "GET", varies: Level | None = None, status: int = 200) -> Call:
    golden = Answer(status, {"a": 1})
    return Call("01-x", method, path, path, {}, None, "", golden, compared=True, varies=varies, recorded=True)


def played(path: str, answer: Answer, varies: Level | None = None) -> Played:
    return Played(call(path, varies=varies), answer, 0.002)


TENANT = "/admin/v2/tenants/t"
EQUAL = Answer(200, {"a": 1})
EXCUSES = Excuses([Excuse("GET /admin/v2/tenants", 1, "because")], [Absence("GET /admin/v2/nothing", "not here")])


def test_unequal_calls_are_counted_by_resource() -> None:
    findings = judge([played(TENANT, EQUAL), played("/lookup/v2/x", Answer(404))], [call("/metrics")], "shape")
    assert table(findings, []) == (
        "    0 of     1  lookup\n    0 of     0  other  (1 calls of absent routes)\n    1 of     1  tenants"
    )
    assert table(findings, ["tenants"]) == "    1 of     1  tenants"
    assert findings.share == 50
    assert (
        summary(findings, ["x"], 3) == "1 of 2 calls equal (50.0%), half of them within 2.0 ms, 3 s; NOT AS LISTED: 1"
    )


def test_what_recordings_disagree_on_does_not_count() -> None:
    other = Answer(200, {"a": 2})
    levels: tuple[Level, ...] = ("status", "shape", "values", "texts")
    counted = [len(judge([played(TENANT, other, varies)], [], "values").verdicts) for varies in levels]
    assert counted == [0, 1, 1, 1]
    unequal = [len(judge([played(TENANT, other, varies)], [], "values").unequal) for varies in levels]
    assert unequal == [0, 0, 0, 1]
    assert difference(call(TENANT), other, "values")


def test_what_is_listed_is_excused_so_many_times() -> None:
    once = judge([played(TENANT, Answer(404))], [], "shape")
    assert unexcused(once, EXCUSES) == []
    assert idle(once, EXCUSES) == []
    twice = judge([played(TENANT, Answer(404))] * 2, [], "shape")
    assert unexcused(twice, EXCUSES) == ["differs.toml: 2 calls like GET /admin/v2/tenants are unequal, more than 1"]
    never = judge([], [], "shape")
    assert unexcused(never, EXCUSES) == []
    assert idle(never, EXCUSES) == ["differs.toml: only 0 calls like GET /admin/v2/tenants are unequal now, not 1"]


def test_what_is_not_listed_is_not_excused() -> None:
    findings = judge([played("/lookup/v2/x", Answer(404))], [call("/admin/v2/tenants")], "shape")
    assert unexcused(findings, Excuses([], EXCUSES.absent)) == [
        "GET /lookup/v2/x: status 404, Pulsar 200",
        "no reason is given for the absent GET /admin/v2/tenants",
    ]


def test_absent_routes_are_told_with_their_reasons() -> None:
    findings = judge([], [call("/admin/v2/nothing"), call("/admin/v2/nothing")], "shape")
    assert absences(findings, EXCUSES) == "    2 calls left out: not here"


def test_a_route_is_absent_when_pulsar_has_it_and_this_broker_has_not() -> None:
    packages = "/admin/v3/packages/{type}/{tenant}/{namespace}"
    calls = [call(packages), call(packages, method="PATCH"), call("/admin/v2/tenants"), call("/no/such/path")]
    assert absent_calls(calls) == [calls[0]]


def test_reasons_stand_in_the_page_of_differences() -> None:
    assert undocumented(EXCUSES, "x because y\nnot\n  here") == []
    assert undocumented(EXCUSES, "because") == ["not here"]
