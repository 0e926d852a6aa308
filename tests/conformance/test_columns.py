"""Tests of runs with many clients, with adapters that a test plays and brokers of Pulsarium."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner

from pulsarium.cli.main import cli
from pulsarium.conformance.adapters import ours
from pulsarium.conformance.clients import CLIENTS, NotBuilt, Release
from pulsarium.conformance.columns import CELLS, Cell, Column, Run, in_order, limit_of, read_cells, run
from pulsarium.conformance.run import Verdict, matching
from pulsarium.conformance.scenarios import SCENARIOS
from pulsarium.proto.installing import remedy

from .played import adapter

FEW = matching(SCENARIOS.values(), ["a-batch-is-one-entry", "another-schema-of-a-producer-is-refused"])
REFUSED = {"error": {"kind": "Timeout", "text": "no answer"}}


def test_each_result_is_written_when_it_comes(tmp_path: Path) -> None:
    written: list[int] = []

    def arrived(cell: Cell) -> None:
        written.append(len((tmp_path / CELLS).read_text().splitlines()))

    cells = run(Run(FEW, tmp_path, command=adapter(producer=REFUSED)), arrived)
    assert written == [1, 2]
    assert read_cells(tmp_path) == cells


def test_a_column_is_a_profile_behind_a_mask(tmp_path: Path) -> None:
    what = Run(FEW[:1], tmp_path, command=adapter(), profiles=("pulsar-4.2", "pulsar-5.0"), masks=("none", "v19"))
    columns = [column for column, _ in what.columns()]
    assert columns == [Column("", profile, mask) for profile in what.profiles for mask in what.masks]
    assert len(run(what)) == 4


def test_a_cell_names_the_client_and_its_frames(tmp_path: Path) -> None:
    (cell,) = run(Run(FEW[1:], tmp_path, command=adapter(producer=REFUSED)))
    assert (cell.title, cell.verdict, cell.reason) == (
        "played 1",
        Verdict.FAIL,
        "the client failed: Timeout: no answer",
    )
    assert {"open", "producer"} <= set(cell.needs)


def test_a_run_that_is_stopped_keeps_the_results_so_far(tmp_path: Path) -> None:
    what = Run(FEW, tmp_path, command=adapter())
    cells = run(what, lambda cell: what.stopping.set())
    assert [each.scenario for each in cells] == [FEW[0].name]


def test_a_cell_is_the_same_after_its_way_through_json() -> None:
    cell = Cell(
        Column("go", "pulsar-4.2", "v19"), "Go 1", FEW[0].name, Verdict.FAIL, "lost", 1.5, ("a",), ("b",), "l", "c"
    )
    assert Cell.of_row(json.loads(json.dumps(cell.row()))) == cell


def test_cells_are_sorted_as_the_scenarios_are() -> None:
    names = [each.name for each in FEW]
    cells = [Cell(Column("", "x"), "x", name, Verdict.PASS) for name in reversed(names)]
    assert [each.scenario for each in in_order(cells)] == names


@pytest.mark.parametrize(("mask", "limit"), [("none", None), ("v0", 0), ("v19", 19)])
def test_a_mask_limits_the_protocol_version(mask: str, limit: int | None) -> None:
    assert limit_of(mask) == limit


@pytest.mark.parametrize("mask", ["19", "v23", "vx", "", "v"])
def test_an_unknown_mask_is_refused(mask: str) -> None:
    with pytest.raises(ValueError, match="unknown mask"):
        limit_of(mask)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("gopher", "no client gopher: the kit knows ours"),
        ("ours@1.0", "ours has no other versions"),
        ("go@../x", "a version has digits"),
    ],
)
def test_an_unknown_client_is_refused(name: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        Release(name)


def test_a_release_has_the_version_of_its_name() -> None:
    assert [Release(name).title for name in ("java@2.11.4", "java")] == [
        "Java 2.11.4",
        f"Java {CLIENTS['java'].release}",
    ]
    assert Release("java@2.11.4").built != Release("java").built


def test_a_client_without_its_build_tool_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotBuilt, match=r"go@0\.0\.1 needs go, not found on the PATH"):
        Release("go@0.0.1").prepare()


def test_a_run_without_any_client_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: Release) -> None:
        raise NotBuilt("it needs a tool")

    monkeypatch.setattr(Release, "prepare", absent)
    result = CliRunner().invoke(cli, ["conformance", "client"])
    assert result.exit_code == 1
    assert result.stderr.endswith(
        "no client of the kit can run here, for the reasons above; --command runs an adapter of yours\n"
    )


async def test_our_adapter_answers_that_it_has_no_avro_where_fastavro_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    async with anyio.create_task_group() as tasks:
        ours_here = ours.Adapter(tasks)
        request = {
            "id": 1,
            "do": "producer",
            "as": "p",
            "client": "c",
            "topic": "persistent://public/default/t",
            "schema": "avro",
        }
        answer = await ours_here.answer(request)
    assert answer == {"id": 1, "unsupported": f"AvroSchema needs fastavro; {remedy('avro')}"}


@pytest.mark.parametrize("option", ["--jobs 1", "--brokers 1", "--mask v19", "--through-proxy"])
def test_an_option_of_our_brokers_is_refused_beside_a_running_broker(option: str) -> None:
    line = f"conformance client --broker pulsar://127.0.0.1:1 --admin-url http://127.0.0.1:1 {option}"
    result = CliRunner().invoke(cli, line.split())
    assert result.exit_code != 0
    assert f"{option.split(maxsplit=1)[0]} is for the brokers of this process" in result.output
