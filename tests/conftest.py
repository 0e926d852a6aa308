"""Settings of all test runs: requirement rows, skips, time limits, hypothesis."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest

from pulsarium.broker.model.schema import registry
from pulsarium.broker.net import slices, stalls
from tests.foreign.toolchains import missing_toolchains
from tests.house.by_client import ByFileAndClient
from tests.house.left_out import LeftOut
from tests.house.nothing_skipped import NothingSkipped
from tests.house.requirements import RequirementRows, read_rows
from tests.house.shared_rewriting import SharedRewriting

HEAVY_TIMEOUT = 900.0
# Tests that cannot be imported without Spark. Only the environment of `scripts/test --all` has Spark.
NEEDS_SPARK = ("bench/test_pipeline.py", "scripts/pages/test_pipeline.py", "pipeline")
collect_ignore = [] if find_spec("pyspark") else list(NEEDS_SPARK)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", metavar="SEED", help="run the files of tests in an order that follows from SEED")


def pytest_configure(config: pytest.Config) -> None:
    in_ci = os.environ.get("CI") == "true"
    rows = read_rows(Path(__file__).parent / "requirements.tsv")
    report = config.rootpath / "build" / "requirements-without-test.txt"
    config.pluginmanager.register(RequirementRows(rows, report, must_be_all=in_ci))
    config.pluginmanager.register(NothingSkipped() if in_ci else LeftOut())
    here = Path(__file__).parent
    config.pluginmanager.register(SharedRewriting(here, without=tuple(here / name for name in collect_ignore)))
    # A machine under load is slow now and then; the time limit of a whole test catches what hangs.
    hypothesis.settings.register_profile("pulsarium", deadline=None, print_blob=True, derandomize=in_ci)
    hypothesis.settings.load_profile("pulsarium")


def pytest_report_header() -> list[str]:
    return [f"missing here: {reason}" for reason in missing_toolchains()]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    needing_spark = [Path(__file__).parent / name for name in NEEDS_SPARK]
    with_spark = {path for path in {item.path for item in items} if any(map(path.is_relative_to, needing_spark))}
    for item in items:
        if item.path in with_spark:
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("heavy") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(HEAVY_TIMEOUT))
    if (seed := config.getoption("--shuffle")) is not None:
        files = sorted({item.path for item in items})
        places = dict(zip(files, random.Random(seed).sample(range(len(files)), len(files)), strict=True))
        items.sort(key=lambda item: places[item.path])
        return
    # Files that take minutes run first. The short files after them keep all processes busy to the end.
    long_files = {item.path for item in items if item.get_closest_marker("heavy")}
    items.sort(key=lambda item: item.path not in long_files)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFileAndClient | None:
    return ByFileAndClient(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)  # around the imports of the workers' shares, too
def pytest_collection() -> Generator[None, object, object]:
    # Collected tests live as long as the process. To examine them again and again took a quarter of the collection.
    gc.disable()
    try:
        return (yield)
    finally:  # also in the process that gives the tests to the workers, and collects none
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def whole_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a broker in this process handle each read at once, also on a busy machine. Tests of slices make their own.

    Nor does a thread judge schemas: the clock of many tests does not wait for threads.
    """
    monkeypatch.setattr(slices, "SLICE", 60)
    monkeypatch.setattr(registry, "LARGE", 1 << 40)
    monkeypatch.setattr(stalls, "LEAST", 60)


def patience(item: pytest.Item) -> float:
    """Return the seconds that a test may take, or 0 for the default."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker and marker.args else 0.0
