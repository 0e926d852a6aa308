"""Files that people and programs expect beside a project: they parse, and lead to what exists."""

from __future__ import annotations

import re
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FORMS = [path for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"]
SCRIPT = re.compile(r"(?<![\w/.])((?:scripts|\.ci)/[\w-]+)")
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    found: dict[Any, Any] = read(ROOT / ".github" / "workflows" / "ci.yml")
    return found


@pytest.mark.parametrize(
    "path",
    ["CONTRIBUTING.md", ".github/SECURITY.md", ".pre-commit-config.yaml", ".github/workflows/ci.yml"],
)
def test_scripts_that_a_file_names_exist(path: str) -> None:
    named = set(SCRIPT.findall((ROOT / path).read_text()))
    assert [script for script in sorted(named) if not (ROOT / script).is_file()] == []


@pytest.mark.parametrize("path", ["CONTRIBUTING.md", ".github/SECURITY.md"])
def test_links_lead_to_files(path: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / path).read_text())
    assert [link for link in links if not ((ROOT / path).parent / link).exists()] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_is_one_that_github_takes(form: Path) -> None:
    read_form = read(form)
    assert {"name", "description", "body"} <= read_form.keys()
    fields = [field for field in read_form["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_there_is_a_form_for_a_bug_a_difference_and_an_idea() -> None:
    assert [form.stem for form in FORMS] == ["bug", "difference", "idea"]


def test_the_workflow_runs_everything_and_each_python(workflow: dict[Any, Any]) -> None:
    assert {"push", "pull_request"} == workflow[True].keys()  # `on` is a truth value in YAML
    jobs = workflow["jobs"]
    assert all("uses" in step or "run" in step for job in jobs.values() for step in job["steps"])
    assert jobs["everything"]["steps"][-1] == {"run": ".ci/run"}
    assert jobs["unit"]["strategy"]["matrix"]["python"] == PYTHONS
    assert jobs["unit"]["steps"][-1] == {"run": "scripts/test --python ${{ matrix.python }}"}


def test_the_workflow_names_the_pythons_of_the_package(workflow: dict[Any, Any]) -> None:
    classifier = re.compile(r'"Programming Language :: Python :: (3\.\d+)"')
    assert classifier.findall((ROOT / "pyproject.toml").read_text()) == PYTHONS


def test_actions_of_the_checkout_exist(workflow: dict[Any, Any]) -> None:
    used = [step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]
    own = [name for name in used if name.startswith("./")]
    assert own
    assert all((ROOT / name / "action.yml").is_file() for name in own)


def test_hooks_run_the_versions_of_the_lock() -> None:
    locked = {each["name"]: each.get("version") for each in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    told = [repository.get("rev") for repository in read(ROOT / ".pre-commit-config.yaml")["repos"]]
    assert told == [f"v{locked['ruff']}", f"v{locked['codespell']}", None]


def test_editors_are_told_what_the_formatter_wants() -> None:
    told = ConfigParser()
    told.read_string("[top]\n" + (ROOT / ".editorconfig").read_text())
    assert told["top"]["root"] == "true"
    assert (told["*"]["indent_size"], told["*"]["max_line_length"]) == ("4", "120")
