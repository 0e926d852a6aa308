"""A map of all folders, files that pages name, and scripts."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, production
from tests.conftest import NEEDS_SPARK

SCRIPTS = sorted(path for path in (ROOT / "scripts").iterdir() if path.is_file() and not path.suffix)
# The map names folders down to this depth, and folders of the broker at any depth.
MAP_DEPTH = 1


def project_files() -> list[Path]:
    """Return files that are committed or would be, relative to the root."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [Path(name) for name in listing.split("\0") if name and (ROOT / name).is_file()]


def project_folders() -> set[Path]:
    return {folder for file in project_files() for folder in file.parents if folder != Path()}


def test_the_map_names_every_folder() -> None:
    """docs/architecture.md writes each folder from the root, with a slash behind: `broker/model/cursor/`."""
    named = set(re.findall(r"[\w./-]+(?=/)", (ROOT / "docs" / "architecture.md").read_text()))
    named |= {parent.as_posix() for name in named for parent in Path(name).parents}
    mapped = (folder for folder in project_folders() if len(folder.parts) <= MAP_DEPTH or folder.parts[0] == "broker")
    assert sorted({folder.as_posix() for folder in mapped} - named) == []


def _named_files() -> Iterator[str]:
    """Yield every `x.py` that a page of docs/, the README or a docstring names, after the page's path."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(module.path for module in production())]
    for page in pages:
        for name in re.findall(r"`((?:[a-z][\w]*/)*[a-z_]\w*\.py)`", page.read_text()):
            yield f"{page.relative_to(ROOT)} names {name}"


def test_files_that_are_named_are_there() -> None:
    files = [f"/{file.as_posix()}" for file in project_files()]
    named = {text: text.rpartition(" ")[2] for text in _named_files()}
    assert [text for text, name in named.items() if not any(file.endswith(f"/{name}") for file in files)] == []


@pytest.mark.parametrize("script", ["check", "setup", "test"])
def test_scripts_explain_themselves_without_work(script: str, tmp_path: Path) -> None:
    copy = tmp_path / "scripts" / script
    copy.parent.mkdir()
    shutil.copy(ROOT / "scripts" / script, copy)
    run = subprocess.run([copy, "--help"], check=True, capture_output=True, text=True)
    assert run.stdout.startswith(f"usage: scripts/{script}")
    assert [path.name for path in tmp_path.iterdir()] == ["scripts"]


@pytest.mark.parametrize("script", sorted(path.name for path in SCRIPTS))
def test_scripts_stop_at_the_first_error(script: str) -> None:
    path = ROOT / "scripts" / script
    assert path.stat().st_mode & 0o111
    assert path.read_text().startswith("#!/usr/bin/env bash\n")
    assert "\nset -euo pipefail\n" in path.read_text()


def test_only_tests_that_need_spark_import_the_pipeline() -> None:
    """`scripts/test` runs all others without pyspark, and would fail when it collects them."""
    pattern = re.compile(r"^(from|import) (pulsarium\.pipeline|tests\.pipeline|pyspark|pandas|numpy)\b", re.M)
    with_spark = [ROOT / "tests" / name for name in NEEDS_SPARK]
    importing = [path for path in sorted((ROOT / "tests").rglob("*.py")) if pattern.search(path.read_text())]
    assert [str(path) for path in importing if not any(map(path.is_relative_to, with_spark))] == []


def test_no_test_imports_from_another() -> None:
    """Code that two test files share stands in a module without `test_`."""
    pattern = re.compile(r"^\s*(from \S*\btest_\w+ import|(from \S+ )?import .*\btest_\w+)", re.M)
    importing = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if pattern.search(path.read_text())]
    assert [str(path.relative_to(ROOT)) for path in importing] == []
