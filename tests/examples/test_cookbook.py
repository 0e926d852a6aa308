"""examples/cookbook: the recipes of docs/cookbook/ pass, in one process for each language."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.blocks import EXAMPLE, PAGES, blocks
from tests.foreign.broker_process import Address, BrokerProcess
from tests.foreign.toolchains import CARGO_TEST, RECIPES, RECIPES_GO, RECIPES_JUNIT, RECIPES_NPM, RECIPES_RUST, ROOT
from tests.helpers.package import JEST, SECONDS, Package

ACTION = ROOT / ".github" / "actions" / "pulsarium" / "action.yml"
BIN = Path(sys.executable).parent
TIMEOUT = SECONDS + 60
NOT_SHOWN = {"go/cookbook_test.go"}
"""Helpers of recipes, which their page explains in words."""

PACKAGES = {
    "go": Package(
        RECIPES_GO,
        ("env", "CGO_ENABLED=0", "GOPROXY=off", "go", "test", "-mod=readonly", "-count=1", "-v", "."),
        "--- PASS: TestOrdersSurviveABadNetwork",
    ),
    "jest": Package(RECIPES_NPM, JEST, "Tests:       2 passed, 2 total"),
    "junit": Package(RECIPES_JUNIT, ("mvn", "-B", "-o", "test"), "Tests run: 4, Failures: 0, Errors: 0, Skipped: 0"),
    "rust": Package(RECIPES_RUST, CARGO_TEST, "test result: ok. 1 passed; 0 failed"),
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    process = BrokerProcess(tmp_path_factory.mktemp("broker"))
    yield process.address
    process.kill()


def test_each_recipe_is_on_a_page() -> None:
    """Tests run all files of the folder, so that a page shows nothing that no test runs."""
    shown = {
        block.about: block.text
        for page in PAGES
        if page.parent.name == "cookbook"
        for block in blocks(page)
        if block.marker == EXAMPLE
    }
    recipes = {
        str(path.relative_to(ROOT))
        for pattern in (
            "python/*.py",
            "python/*.toml",
            "java/src/**/*.java",
            "go/*.go",
            "node/*.js",
            "rust/tests/*.rs",
            "spark/*",
            "ci/*",
        )
        for path in RECIPES.glob(pattern)
        if str(path.relative_to(RECIPES)) not in NOT_SHOWN
    }
    assert recipes
    assert recipes - set(shown) == set()


@pytest.mark.timeout(TIMEOUT)
@pytest.mark.parametrize(
    "line", ["github.yml: pytest", "gitlab.yml: pulsarium exec -- pytest -n auto --junitxml report.xml"]
)
def test_the_recipes_in_python_pass_by_the_line_of_a_ci_file(line: str, tmp_path: Path) -> None:
    file, command = line.split(": ", 1)
    assert command in lines(load(file))
    folder = tmp_path / "project"
    shutil.copytree(RECIPES / "python", folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("PULSAR", "PYTEST"))}
    run = subprocess.run(
        shlex.split(command),
        cwd=folder,
        env={**ours, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "20 passed" in run.stdout


def test_the_ci_file_for_github_fits_the_action() -> None:
    inputs = yaml.safe_load(ACTION.read_text())["inputs"]
    used = [
        step for job in load("github.yml")["jobs"].values() for step in job["steps"] if "./" in step.get("uses", "")
    ]
    assert used
    for step in used:
        assert ROOT / step["uses"].removeprefix("./pulsarium/") == ACTION.parent
        assert set(step.get("with", {})) <= set(inputs)


@pytest.mark.foreign
@pytest.mark.heavy
@pytest.mark.timeout(TIMEOUT)
@pytest.mark.parametrize("language", PACKAGES)
def test_the_recipes_in_another_language_pass(language: str, broker: Address) -> None:
    where = {"PULSARIUM_SERVICE_URL": broker.service_url, "PULSARIUM_ADMIN_URL": broker.admin_url}
    PACKAGES[language].passes({**where, "PULSARIUM": str(BIN / "pulsarium")})


def load(file: str) -> Any:
    """Return what a CI file says."""
    return yaml.safe_load((RECIPES / "ci" / file).read_text())


def lines(ci: Any) -> list[str]:
    """Return the commands of a CI file for GitHub or GitLab."""
    jobs = ci.get("jobs", ci).values()
    return [line for job in jobs for line in job.get("script", [step.get("run") for step in job.get("steps", [])])]
