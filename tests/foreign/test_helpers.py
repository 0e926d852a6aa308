"""Helpers of these tests: recorded texts, programs that answer by lines, order by key, pairs of options, toolchains."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.outcomes import Failed, Skipped
from hypothesis import given
from hypothesis import strategies as st

from .key_order import assert_ordered_by_key, events
from .lines import LineProgram
from .pairwise import pairs_of, pairwise
from .recorded import comparable, differences, parsed, without_chance
from .scenario import COMBINATIONS
from .toolchains import (
    ADMIN,
    CLI,
    GO,
    HELPER_RUST,
    HELPERS,
    JAVA,
    NODE,
    RECORDS,
    TOXIPROXY,
    Toolchain,
    missing,
    missing_toolchains,
    require,
)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("created 2026-11-21T20:39:04.021Z on localhost:8080", "created TIME on BROKER"),
        ("12:0:-1", "LEDGER:0:-1"),
        ("-1:-1:-1", "-1:-1:-1"),
        ("at 1795295046050 ms", "at MILLISECONDS ms"),
        ("r    [produce, consume]", "r    [consume, produce]"),
        ("v1.2:3", "v1.2:3"),
    ],
)
def test_values_of_chance_get_names(text: str, left: str) -> None:
    assert without_chance(text) == left


def test_measures_are_compared_by_type_in_statistics_only() -> None:
    told = {"msgRateIn": 1.5, "msgBacklog": 4, "version": None}
    assert comparable(told) == told
    assert comparable(told, statistics=True) == {"msgRateIn": "NUMBER", "msgBacklog": 4, "version": None}


def test_sets_of_names_have_an_order() -> None:
    assert comparable(["b", "a"]) == ["a", "b"]
    assert comparable([2, 1]) == [2, 1]


@pytest.mark.parametrize(
    ("wanted", "got", "lines"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, []),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, [".a[1].b: 2 there, 3 here"]),
        ({"a": 1}, {"b": 1}, [".a: only there", ".b: only here"]),
        ([1], [1, 2], [": [1] there, [1, 2] here"]),
        (1, True, [": 1 there, True here"]),
    ],
)
def test_differences_of_answers_are_named(wanted: Any, got: Any, lines: list[str]) -> None:
    assert list(differences(wanted, got)) == lines


@pytest.mark.parametrize(("text", "value"), [('{"a": 1}', {"a": 1}), ("[1]", [1]), ("{no", "{no"), ("7", "7")])
def test_json_in_a_text(text: str, value: Any) -> None:
    assert parsed(text) == value


PROGRAM = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    print("working on", request["scenario"], file=sys.stderr, flush=True)
    if request["scenario"] == "die":
        sys.exit(3)
    failed = request["scenario"] == "fail"
    result = {"ok": not failed, "error": "what went wrong" if failed else "", "got": request.get("value")}
    print(json.dumps(result), flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[LineProgram]:
    line_program = LineProgram([sys.executable, "-c", PROGRAM], tmp_path / "log")
    yield line_program
    line_program.close()


def test_one_process_answers_many_requests(program: LineProgram) -> None:
    assert [program.run("echo", value=value)["got"] for value in range(3)] == [0, 1, 2]


def test_a_failure_comes_with_its_error_and_the_log(program: LineProgram) -> None:
    with pytest.raises(AssertionError, match=r"what went wrong\nworking on fail"):
        program.run("fail")
    program.run("echo")


def test_a_program_that_dies_is_started_again(program: LineProgram) -> None:
    with pytest.raises(AssertionError, match="ended with exit code 3"):
        program.run("die")
    assert program.run("echo", value="back")["got"] == "back"


def test_the_order_check_accepts_each_allowed_history() -> None:
    assert_ordered_by_key(
        events(
            [
                "a received k 1",
                "b received x 2",
                "a received k 3",
                "a acknowledged k 1",
                "a left",
                "b received k 3",
                "b received k 4",
                "b acknowledged k 3",
                "b acknowledged k 4",
                "c received k 5",
            ]
        )
    )


@pytest.mark.parametrize(
    ("history", "complaint"),
    [
        (("a received k 1", "b received k 2"), "others hold"),
        (("a received k 1", "a left", "b received k 2", "b received k 1"), "after 2"),
        (("a received k 2", "a acknowledged k 2", "b received k 1"), "new, after 2"),
        (("a received k 1", "a acknowledged k 1", "a received k 1"), "after 1"),
    ],
)
def test_the_order_check_refuses_each_forbidden_history(history: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        assert_ordered_by_key(events(history))


columns = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True), min_size=2, max_size=4)


@given(columns)
def test_every_pair_of_values_is_covered(options: list[list[int]]) -> None:
    rows = pairwise(*options)
    covered = set().union(*map(pairs_of, rows))
    assert covered == set().union(*map(pairs_of, itertools.product(*options)))


@given(columns)
def test_rows_come_from_the_product_once_each_and_in_its_order(options: list[list[int]]) -> None:
    product = list(itertools.product(*options))
    places = [product.index(tuple(row)) for row in pairwise(*options)]  # type: ignore[arg-type]
    assert places == sorted(set(places))


def test_one_column_is_all_of_it() -> None:
    assert pairwise("abc") == [("a",), ("b",), ("c",)]


def test_nothing_to_combine() -> None:
    assert pairwise([], [1, 2]) == []


def test_two_columns_are_the_whole_product() -> None:
    assert pairwise("ab", [1, 2, 3]) == list(itertools.product("ab", [1, 2, 3]))


def test_the_combinations_are_few() -> None:
    assert len(set(COMBINATIONS)) == len(COMBINATIONS) <= 18


@pytest.fixture
def toolchain(tmp_path: Path) -> Toolchain:
    (tmp_path / "one.src").write_text("1")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "two.src").write_text("2")
    return Toolchain(tmp_path, ("sh", "no-such-tool"), ("*.src", "sub/**/*"), "out/product")


def build(toolchain: Toolchain) -> None:
    toolchain.product.parent.mkdir(exist_ok=True)
    toolchain.product.write_text("")
    toolchain.stamp.write_text(toolchain.fingerprint() + "\n")


def test_a_missing_toolchain_names_its_tools_and_the_command(toolchain: Toolchain) -> None:
    reason = missing(toolchain)
    assert "no no-such-tool on PATH" in reason
    assert "scripts/setup --foreign" in reason
    assert toolchain.folder.name in reason


def test_a_built_toolchain_is_found(toolchain: Toolchain) -> None:
    build(toolchain)
    assert missing(toolchain) == ""
    assert require(toolchain) == toolchain.product
    assert missing_toolchains([toolchain]) == []


def test_changed_sources_need_a_new_build(toolchain: Toolchain) -> None:
    build(toolchain)
    (toolchain.folder / "sub" / "two.src").write_text("3")
    assert "other sources" in missing(toolchain)
    assert len(missing_toolchains([toolchain])) == 1


@pytest.mark.parametrize(("ci", "outcome"), [("", Skipped), ("true", Failed)])
def test_a_plain_run_skips_and_ci_fails(
    toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="scripts/setup --foreign"):
        require(toolchain)


BUILT = (JAVA, RECORDS, ADMIN, CLI, GO, NODE, *HELPERS, HELPER_RUST, *TOXIPROXY)


@pytest.mark.parametrize("toolchain", BUILT, ids=lambda toolchain: str(toolchain.folder.name))
def test_the_fetch_scripts_compute_the_same_fingerprint(toolchain: Toolchain) -> None:
    require(toolchain)
    assert toolchain.stamp.read_text().strip() == toolchain.fingerprint()
