"""The skeletons of adapters: each is a whole program, and passes the self-test as far as it claims operations."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pulsarium.conformance.protocol import PROTOCOL
from pulsarium.conformance.selftest import Verdict, checks
from pulsarium.conformance.skeletons import LANGUAGES, skeleton
from tests.foreign.toolchains import in_ci

from .played import PlayedSide

BUILT = {
    "go": (["go", "build", "-o", "adapter", "main.go"], ["./adapter"]),
    "java": (["javac", "-Xlint:all", "-Werror", "Adapter.java"], ["java", "-cp", ".", "Adapter"]),
    "rust": (["rustc", "--edition", "2021", "-D", "warnings", "-o", "adapter", "main.rs"], ["./adapter"]),
}
"""Commands that build an adapter and run it, in the folder of its source."""


def written(language: str, folder: Path) -> Path:
    path = folder / LANGUAGES[language]
    path.write_text(skeleton(language), "utf-8")
    return path


def need(program: str) -> None:
    if shutil.which(program) is None and in_ci():
        pytest.fail(f"no {program} on PATH")
    if shutil.which(program) is None:
        pytest.skip(f"no {program} on PATH")


def passes(command: Sequence[str], folder: Path) -> None:
    """Fail unless an adapter opens and closes, as it claims, and says of everything else that it has none."""
    told = {each.operation: each for each in checks(command, PlayedSide(), folder)}
    assert [each for each in told.values() if each.is_bad] == []
    answered = [name for name, each in told.items() if each.verdict is Verdict.ANSWERS]
    assert answered == ["hello", "open", "close", "unknown operations", "end of input"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_skeleton_speaks_this_version_of_the_protocol(language: str) -> None:
    text = skeleton(language).replace("\\", "")
    assert any(f"{name}{PROTOCOL}" in text for name in ('"protocol": ', "protocol: ", '["protocol"] = '))


def test_the_skeleton_in_python_passes_the_self_test(tmp_path: Path) -> None:
    passes([sys.executable, "-P", str(written("python", tmp_path))], tmp_path)


@pytest.mark.heavy
def test_the_skeleton_in_javascript_passes_the_self_test(tmp_path: Path) -> None:
    need("node")
    passes(["node", str(written("javascript", tmp_path))], tmp_path)


@pytest.mark.heavy
@pytest.mark.parametrize("language", BUILT)
def test_a_skeleton_that_is_compiled_passes_the_self_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    build, run = BUILT[language]
    need(build[0])
    written(language, tmp_path)
    monkeypatch.chdir(tmp_path)
    subprocess.run(build, check=True)
    passes(run, tmp_path)
