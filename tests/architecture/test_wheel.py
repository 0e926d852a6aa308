"""What users install: the links in src/ become real folders in the wheel, also by way of an sdist."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.architecture.source import FOLDERS, ROOT

pytestmark = pytest.mark.heavy

SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what goes into a build, because setuptools leaves files beside the sources."""
    copy = tmp_path_factory.mktemp("tree")
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in (*SOURCES, *(folder for folder in FOLDERS if (ROOT / folder).exists())):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=unwanted)
        else:
            shutil.copy(ROOT / name, copy / name)
    return copy


def build(kind: str, tree: Path, output: Path) -> Path:
    """Builds a "wheel" or "sdist" with what .venv has, so that nothing is fetched."""
    command = [sys.executable, "-P", "-m", "build", "--no-isolation", f"--{kind}", "--outdir", str(output), str(tree)]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=output)
    assert run.returncode == 0, run.stdout + run.stderr
    (built,) = output.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tree, tmp_path_factory.mktemp("wheel"))


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_wheel_holds_every_module_and_nothing_else(tree: Path, wheel: Path) -> None:
    package = {path.name for path in (tree / "src" / "pulsarium").iterdir() if path.is_file()}
    kept = {".py", ".pyi", ".proto"}
    folders = [tree / folder for folder in FOLDERS if (tree / folder).exists()]
    # The matrix has programs of other languages, which are built where they run.
    code = {
        path.relative_to(tree).as_posix()
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in kept or (folder.name == "matrix" and path.is_file())
    }
    spark = {"pyspark_pulsar/__init__.py"}
    assert names(wheel) == spark | {f"pulsarium/{name}" for name in package | code}


def test_an_sdist_makes_the_same_wheel(tree: Path, wheel: Path, tmp_path: Path) -> None:
    sdist = build("sdist", tree, tmp_path)
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("pulsarium-*/")
    output = tmp_path / "again"
    output.mkdir()
    assert names(build("wheel", unpacked, output)) == names(wheel)


def test_the_wheel_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-P", "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*pip, str(wheel)], check=True)
    # Its dependencies come from .venv; a folder on PYTHONPATH has no .pth files read, so not the checkout itself.
    environment = {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")}
    program = "from pulsarium import broker, cli, client, pipeline, proto; print(client.__file__)"
    run = subprocess.run(
        [python, "-P", "-W", "error", "-c", program],
        env=environment,
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert Path(run.stdout.strip()).is_relative_to(tmp_path / "venv")
    listing = subprocess.run(
        [tmp_path / "venv" / "bin" / "pulsarium", "--help"], env=environment, check=True, capture_output=True, text=True
    )
    assert "serve" in listing.stdout
