"""The lock file fits pyproject.toml and leads to no place of its own."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.source import ROOT


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def lock() -> str:
    return (ROOT / "requirements.lock").read_text()


def direct(pyproject: dict[str, Any]) -> list[Requirement]:
    """What pyproject.toml names, for users, tests, checks and builds."""
    groups = [*pyproject["dependency-groups"].values(), *pyproject["project"]["optional-dependencies"].values()]
    lines = [line for group in groups for line in group if isinstance(line, str)]
    return [Requirement(line) for line in pyproject["project"]["dependencies"] + lines]


def test_the_lock_meets_what_pyproject_asks_for(pyproject: dict[str, Any], lock: str) -> None:
    pinned = dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", lock, re.M))
    unmet = [
        f"{requirement}: {pinned.get(canonicalize_name(requirement.name))}"
        for requirement in direct(pyproject)
        if not requirement.specifier.contains(pinned.get(canonicalize_name(requirement.name), "0"), prereleases=True)
    ]
    assert unmet == []


def test_every_pin_has_hashes_and_no_address(lock: str) -> None:
    pins = re.split(r"^(?=[a-z0-9])", "\n".join(line for line in lock.splitlines() if "# " not in line), flags=re.M)[1:]
    assert pins
    assert [pin for pin in pins if "==" not in pin or "--hash=sha256:" not in pin] == []
    assert [word for word in ("://", "--index", "--extra-index", "--find-links") if word in lock] == []
