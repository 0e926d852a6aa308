"""uv.lock: what a broker needs, and where packages come from. `scripts/check` compares the file with pyproject.toml."""

from __future__ import annotations

import tomllib
from urllib.parse import urlsplit

from tests.architecture.source import ROOT

PACKAGES = tomllib.loads((ROOT / "uv.lock").read_text())["package"]


def test_a_broker_needs_no_more_than_its_dependencies() -> None:
    needed, waiting = set(), ["pulsarium"]
    while waiting:
        needed.add(name := waiting.pop())
        named = [package for package in PACKAGES if package["name"] == name]
        waiting += {each["name"] for package in named for each in package.get("dependencies", ())} - needed
    assert {"click", "trio"} <= needed
    unwanted = {"anyio", "cryptography", "grpcio", "httpx", "numpy", "pandas", "pyarrow", "pyspark", "pytest", "ruff"}
    assert sorted(needed & unwanted) == []


def test_all_packages_come_from_one_index() -> None:
    files = [file for package in PACKAGES for file in (*package.get("wheels", ()), package.get("sdist"))]
    assert len({urlsplit(file["url"]).netloc for file in files if file}) == 1
    assert len({package["source"].get("registry") for package in PACKAGES} - {None}) == 1
