"""The lock files agree with pyproject.toml and with each other, and name no package index."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.source import ROOT

LOCKS = sorted(path.stem for path in (ROOT / "locks").iterdir())


def read(lock: str) -> str:
    return (ROOT / "locks" / f"{lock}.txt").read_text()


def pinned(lock: str) -> dict[str, set[str]]:
    """Return the versions of each package; there are two where older Pythons have another."""
    versions: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9._-]+)==(\S+)", read(lock), re.M):
        versions.setdefault(name, set()).add(version)
    return versions


def named(lock: str) -> list[Requirement]:
    """Return the requirements in pyproject.toml that this lock file must satisfy."""
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    groups = project["dependency-groups"]
    required = project["project"]["dependencies"]
    lines = {
        "base": [*required, *groups["editable"]],
        "image": [*required, *extras["client"], *extras["auth"]],
        "unit": [*required, *extras["matrix"], *groups["editable"], *groups["test"]],
        "dev": [*required, *(line for group in (*extras.values(), *groups.values()) for line in group)],
        "release": groups["release"],
        "docs": groups["docs"],
    }[lock]
    requirements = [Requirement(line) for line in lines if isinstance(line, str)]
    # What only scripts/release and scripts/docs need is in locks of their own.
    apart = {"twine", "mkdocstrings-python", "zensical"} if lock == "dev" else set()
    return [one for one in requirements if one.name not in {"pulsarium", *apart}]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_meets_what_pyproject_asks_for(lock: str) -> None:
    versions = pinned(lock)
    unmet = [
        f"{requirement}: {found}"
        for requirement in named(lock)
        if not (found := versions.get(canonicalize_name(requirement.name)))
        or not all(requirement.specifier.contains(version, prereleases=True) for version in found)
    ]
    assert unmet == []


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_hashes_and_no_address(lock: str) -> None:
    text = read(lock)
    pins = re.split(r"^(?=[a-z0-9])", "\n".join(line for line in text.splitlines() if "# " not in line), flags=re.M)[1:]
    assert pins
    assert [pin for pin in pins if "==" not in pin or "--hash=sha256:" not in pin] == []
    assert [word for word in ("://", "--index", "--extra-index", "--find-links") if word in text] == []


@pytest.mark.parametrize("lock", sorted({*LOCKS} - {"dev"}))
def test_a_package_has_the_version_that_it_has_for_development(lock: str) -> None:
    everything = pinned("dev")
    assert {
        name: versions
        for name, versions in pinned(lock).items()
        if name in everything and not versions <= everything[name]
    } == {}


@pytest.mark.parametrize("lock", ["base", "image", "unit"])
def test_development_has_all_that_users_have(lock: str) -> None:
    assert sorted(pinned(lock).keys() - pinned("dev").keys()) == []


def test_a_broker_needs_no_more_than_its_dependencies() -> None:
    unwanted = {"anyio", "cryptography", "grpcio", "httpx", "numpy", "pandas", "pyarrow", "pyspark", "pytest", "ruff"}
    assert sorted(pinned("base").keys() & unwanted) == []
