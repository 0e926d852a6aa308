"""The action of .github/actions: a broker for the steps of a workflow that follow.

The YAML of docs/testing.md: a workflow, a job and a compose file of a user's own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.blocks import ROOT, TESTED, blocks

ACTION = ROOT / ".github" / "actions" / "pulsarium"


class Runner:
    """Return what GitHub gives a step: files to write to, and a folder for the job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = folder / "output"
        self.environment = folder / "environment"

    def start(self, options: str = "") -> subprocess.CompletedProcess[str]:
        places = {"GITHUB_OUTPUT": self.output, "GITHUB_ENV": self.environment, "RUNNER_TEMP": self.folder}
        return subprocess.run(
            [ACTION / "start"],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**os.environ, **{name: str(path) for name, path in places.items()}, "PULSARIUM_OPTIONS": options},
        )


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    runner = Runner(tmp_path)
    yield runner
    pid = tmp_path / "pulsarium" / "pid"
    if pid.exists():
        with suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGTERM)


def read(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


@pytest.mark.heavy
def test_the_steps_that_follow_know_where_the_broker_is(runner: Runner) -> None:
    started = runner.start("--set clusterName=ci --log-level warning")
    assert started.returncode == 0, started.stdout + started.stderr
    outputs, environment = read(runner.output), read(runner.environment)
    assert outputs["service-url"].startswith("pulsar://127.0.0.1:")
    assert environment == {"PULSAR_SERVICE_URL": outputs["service-url"], "PULSAR_ADMIN_URL": outputs["admin-url"]}
    with urllib.request.urlopen(f"{outputs['admin-url']}/admin/v2/clusters") as answer:
        assert answer.read() == b'["ci"]'


@pytest.mark.heavy
def test_a_broker_that_does_not_start_fails_the_step_with_its_reason(runner: Runner) -> None:
    started = runner.start("--set brokerServicePort=x")
    assert started.returncode == 1
    assert "::error::pulsarium serve ended: pulsarium: --set: brokerServicePort: 'x'" in started.stdout
    assert not runner.output.exists()


def test_the_outputs_are_those_of_the_script() -> None:
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    (start,) = [step for step in action["runs"]["steps"] if step.get("id") == "start"]
    assert start["run"] == '"$GITHUB_ACTION_PATH/start"'
    assert os.access(ACTION / "start", os.X_OK)
    assert {name: output["value"] for name, output in action["outputs"].items()} == {
        name: f"${{{{ steps.start.outputs.{name} }}}}" for name in ("service-url", "admin-url")
    }
    given = {name for name in action["inputs"] if f"inputs.{name} " in (ACTION / "action.yml").read_text()}
    assert given == action["inputs"].keys()


CHECKOUT = "pulsarium"


def documents() -> list[dict[str, Any]]:
    return [yaml.safe_load(each.text) for each in blocks(ROOT / "docs" / "testing.md") if each.marker == TESTED]


def test_the_workflow_uses_the_action_with_inputs_that_it_has() -> None:
    (steps,) = [block["steps"] for block in documents() if "steps" in block]
    (step,) = [step for step in steps if step.get("uses", "").startswith("./")]
    folder = ROOT / Path(step["uses"]).relative_to(CHECKOUT)
    action = yaml.safe_load((folder / "action.yml").read_text())
    assert step["with"].keys() <= action["inputs"].keys()


def test_the_service_waits_for_the_health_check_of_compose_yaml() -> None:
    (own,) = [block for block in documents() if "include" in block]
    (included,) = own["include"]
    services = yaml.safe_load((ROOT / Path(included).relative_to(CHECKOUT)).read_text())["services"]
    (service,) = own["services"].values()
    ((name, wait),) = service["depends_on"].items()
    assert wait == {"condition": "service_healthy"}
    assert "healthcheck" in services[name]
    ports = {port.rpartition(":")[2] for port in services[name]["ports"]}
    addresses = {url.rpartition("/")[2] for url in service["environment"].values()}
    assert addresses == {f"{name}:{port}" for port in ports}
