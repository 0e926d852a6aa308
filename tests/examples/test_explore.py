"""examples/explore: the explorer finds the bug of each application, and its mended form passes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pulsarium.broker.testing import running
from tests.examples.explored import APPLICATIONS, build_go, build_java, explore, through
from tests.foreign.toolchains import GO, JAVA, require

JOBS = ("--jobs", "4")  # most of a run waits for reconnections


def judge(name: str, folder: Path, runs: int, options: Sequence[str] = JOBS) -> None:
    found = explore(name, folder, runs=200, seed=1, mended=False, options=options)
    assert found.failure
    assert 1 <= len(found.script) <= 8  # 3 at most, unless a busy machine repeats no shorter one
    mended = explore(name, folder, runs=runs, seed=1, mended=True, options=options)
    assert not mended.failure


@pytest.mark.timeout(600)
def test_a_payment_that_is_booked_twice_is_found(tmp_path: Path) -> None:
    judge("no_idempotence", tmp_path, 5)


@pytest.mark.timeout(600)
def test_a_payment_that_is_booked_twice_is_found_through_a_proxy(tmp_path: Path) -> None:
    with running() as broker:
        judge("no_idempotence", tmp_path, 5, through(broker.service_url, broker.admin_url))


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["ack_before_work", "cumulative_ack"])
def test_a_bug_in_python_is_found(name: str, tmp_path: Path) -> None:
    judge(name, tmp_path, 12)


@pytest.mark.foreign
@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [each for each in APPLICATIONS if each[0].isupper()])
def test_a_bug_in_java_is_found(name: str, tmp_path: Path) -> None:
    require(JAVA)
    build_java(tmp_path)
    judge(name, tmp_path, 6)


@pytest.mark.foreign
@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [each for each in APPLICATIONS if "-" in each])
def test_a_bug_in_go_is_found(name: str, tmp_path: Path) -> None:
    require(GO)
    build_go(tmp_path)
    judge(name, tmp_path, 12)
