"""Workers of pytest-xdist divide the test modules among themselves before the collection, and then the tests.

Skipped tests fail in CI, where all toolchains must exist. The table of `scripts/test --coverage`.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.house.by_client import share_of
from tests.house.covered import ALL, Share, by_folder, table
from tests.house.nothing_skipped import NothingSkipped
from tests.house.shared_rewriting import SharedRewriting

MODULES = {f"suite.test_{name}" for name in ("a", "b", "c", "broken")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "suite"
    folder.mkdir()
    for name in ("test_a", "test_b", "test_c", "test_left_out", "helper"):
        (folder / f"{name}.py").touch()
    (folder / "test_broken.py").write_text("import no_such_module")
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def imported(
    folder: Path, worker: dict[str, Any] | None, source: object = pytest.Config.ArgsSource.TESTPATHS
) -> set[str]:
    """Return the modules that a worker imports before it collects, and forget them again."""
    config = SimpleNamespace(args_source=source, **({"workerinput": worker} if worker else {}))
    rewriting = SharedRewriting(folder, without=(folder / "test_left_out.py",))
    rewriting.pytest_collection(SimpleNamespace(config=config))  # type: ignore[arg-type]
    names = {name for name in sys.modules if name.startswith("suite.")}
    for name in names:
        del sys.modules[name]
    sys.modules.pop("suite", None)
    return names


def worker(number: int) -> dict[str, Any]:
    return {"workerid": f"gw{number}", "workercount": 2}


def test_each_module_has_one_worker_and_a_broken_one_is_left_to_the_collection(folder: Path) -> None:
    first, second = imported(folder, worker(0)), imported(folder, worker(1))
    assert not first & second
    assert first | second == MODULES - {"suite.test_broken"}


def test_one_process_and_a_part_of_the_suite_import_nothing_before_the_collection(folder: Path) -> None:
    assert imported(folder, None) == set()
    assert imported(folder, worker(0), pytest.Config.ArgsSource.ARGS) == set()


def test_a_process_that_collects_no_tests_collects_its_garbage(pytester: pytest.Pytester) -> None:
    """The process that gives the tests to the workers lives as long as the run."""
    seen = []

    class Controller:
        def pytest_collection(self) -> bool:
            seen.append(gc.isenabled())
            return True

        def pytest_runtestloop(self) -> bool:
            seen.append(gc.isenabled())
            return True

    pytester.makeconftest("from tests.conftest import pytest_collection")
    pytester.inline_run(plugins=[Controller()])
    assert seen == [False, True]


def test_a_worker_runs_a_whole_file_and_of_many_clients_one() -> None:
    file = "tests/conformance/test_clients.py"
    assert (Path(__file__).parents[2] / file).exists()
    assert share_of("tests/proto/test_text.py::test_a[java-b]") == share_of("tests/proto/test_text.py::test_b")
    of_java, of_go = (f"{file}::test_a_client_passes_a_scenario[{client}-a-seek]" for client in ("java", "go"))
    assert share_of(of_java) == share_of(of_java.replace("a-seek", "a-batch")) != share_of(of_go)


def test_skips_fail_and_expected_failures_do_not(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_module="import pytest\npytest.importorskip('no_such_module')",
        test_functions="""
            import pytest
            def test_skips(): pytest.skip("no toolchain")
            @pytest.mark.skip(reason="never")
            def test_marked(): pass
            @pytest.mark.xfail
            def test_expected(): assert False
            def test_passes(): pass
        """,
    )
    run = pytester.inline_run("--continue-on-collection-errors", plugins=[NothingSkipped()])
    passed, skipped, failed = run.listoutcomes()
    assert len(passed) == 1
    assert [report.wasxfail for report in skipped] == [""]
    reasons = {str(report.longrepr) for report in failed}
    assert "nothing may be skipped here: Skipped: no toolchain" in reasons
    assert len(reasons) == 3


def measured(lines: int, lines_run: int, branches: int, branches_run: int) -> dict[str, Any]:
    return {
        "summary": {
            "num_statements": lines,
            "covered_lines": lines_run,
            "num_branches": branches,
            "covered_branches": branches_run,
        }
    }


REPORT = {
    "files": {
        "client/message.py": measured(10, 10, 0, 0),
        "broker/model/topic/base.py": measured(6, 3, 4, 2),
        "broker/model/topic/topics.py": measured(2, 1, 0, 0),
        "broker/model/__init__.py": measured(0, 0, 0, 0),
    }
}


def test_the_files_of_a_folder_are_added_up() -> None:
    shares = by_folder(REPORT)
    assert list(shares) == ["broker/model", "broker/model/topic", "client", ALL]
    assert shares["broker/model/topic"] == Share(8, 4, 4, 2)
    assert shares[ALL] == Share(18, 14, 4, 2)


def test_branches_count_as_lines_do_and_nothing_is_all_of_it() -> None:
    assert {folder: each.percent for folder, each in by_folder(REPORT).items()} == {
        "broker/model": 100,
        "broker/model/topic": 50,
        "client": 100,
        ALL: 100 * 16 / 22,
    }


def test_a_line_says_what_did_not_run() -> None:
    assert table(by_folder(REPORT)).splitlines()[2].split() == ["broker/model/topic", "50%", "8", "4", "4", "2"]
