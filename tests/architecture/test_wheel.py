"""The wheel that users install: the links in src/ become real folders, also by way of an sdist."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from scripts.release import build, check_sdist, check_wheel, compare
from tests.architecture.wheel import copied

pytestmark = pytest.mark.heavy

EPOCH = 1_700_000_000


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the checkout, because setuptools leaves files beside the sources."""
    return copied(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def built(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Build the sdist, and the wheel from the sdist, with the packages of .venv, so that nothing is downloaded."""
    return build(tree, tmp_path_factory.mktemp("built"), Path(sys.executable), EPOCH)


@pytest.fixture(scope="module")
def wheel(built: list[Path]) -> Path:
    return built[0]


def test_the_wheel_of_an_sdist_holds_every_module_and_nothing_else(tree: Path, wheel: Path) -> None:
    check_wheel(wheel, tree)


def test_the_sdist_holds_all_of_the_checkout(tree: Path, built: list[Path]) -> None:
    check_sdist(built[1], tree)


def test_two_builds_are_the_same_bytes(built: list[Path], tmp_path: Path) -> None:
    compare(built, build(copied(tmp_path / "tree"), tmp_path / "built", Path(sys.executable), EPOCH))


def test_a_checkout_without_symbolic_links_builds_no_wheel(tmp_path: Path) -> None:
    tree = copied(tmp_path / "tree")
    for link in tree.glob("src/*/*"):
        if link.is_symlink():  # as git writes it with core.symlinks=false
            to = os.readlink(link)
            link.unlink()
            link.write_text(to)
    program = "from setuptools import build_meta; build_meta.build_wheel('.')"
    run = subprocess.run([sys.executable, "-P", "-c", program], cwd=tree, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "`git config core.symlinks true`" in run.stderr


def test_the_wheel_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-P", "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*pip, str(wheel)], check=True)
    # Dependencies come from .venv. Python reads no .pth files on PYTHONPATH, so it does not find the checkout.
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
