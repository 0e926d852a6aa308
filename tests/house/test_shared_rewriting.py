"""Workers of pytest-xdist divide the test modules among themselves before the collection."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

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
