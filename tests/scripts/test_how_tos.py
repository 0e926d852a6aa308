"""The YAML of docs/testing.md: a workflow, a job and a compose file of a user's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.M | re.S)
CHECKOUT = "pulsarium"


def blocks() -> list[dict[str, Any]]:
    return [yaml.safe_load(text) for text in BLOCK.findall((ROOT / "docs" / "testing.md").read_text())]


def test_the_workflow_uses_the_action_with_inputs_that_it_has() -> None:
    (steps,) = [block["steps"] for block in blocks() if "steps" in block]
    (step,) = [step for step in steps if step.get("uses", "").startswith("./")]
    folder = ROOT / Path(step["uses"]).relative_to(CHECKOUT)
    action = yaml.safe_load((folder / "action.yml").read_text())
    assert step["with"].keys() <= action["inputs"].keys()


def test_the_service_waits_for_the_health_check_of_compose_yaml() -> None:
    (own,) = [block for block in blocks() if "include" in block]
    (included,) = own["include"]
    services = yaml.safe_load((ROOT / Path(included).relative_to(CHECKOUT)).read_text())["services"]
    (service,) = own["services"].values()
    ((name, wait),) = service["depends_on"].items()
    assert wait == {"condition": "service_healthy"}
    assert "healthcheck" in services[name]
    ports = {port.rpartition(":")[2] for port in services[name]["ports"]}
    addresses = {url.rpartition("/")[2] for url in service["environment"].values()}
    assert addresses == {f"{name}:{port}" for port in ports}
