"""PulsarAdmin, the official Java client of the REST API: nearly all methods, with the answers of a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from .broker_process import COMMAND, BrokerProcess, given_address, is_pulsarium
from .conftest import Launch
from .java_admin import CONFIG, EXPECTED, SECONDS, comparable_calls, run, secured_config, token
from .recorded import differences
from .toolchains import ADMIN, require

# The first test waits for the whole program.
pytestmark = [pytest.mark.timeout(SECONDS + 60), pytest.mark.heavy]

SECTIONS = {
    "clusters": (),
    "tenants": (),
    "brokers": (),
    "namespaces": (),
    "bundles": (),
    "namespace policies": (),
    "topics": ("B-48", "B-51"),
    "partitioned topics": (),
    "messages": ("S415-35", "S415-36", "S415-39"),
    "subscriptions": (),
    "non-persistent topics": (),
    "topic policies": (),
}
"""The rows that each section of the program proves."""

UNANSWERED = {
    "Brokers": {"shutDownBrokerGracefully": "ends the broker"},
    "Namespaces": {
        "deleteNamespaceBundle": "is refused, because the bundle is in use",
        "getReplicationConfigVersion": "no broker since 2.0 has its route",
        "setNamespaceEntryFilters": "is refused, because there are no filters here",
    },
    "TopicPolicies": {"setEntryFiltersPerTopic": "is refused, because there are no filters here"},
    "Topics": {"triggerOffload": "nothing to offload to"},
}
"""Methods that never succeed, and the reasons."""

Line = dict[str, Any]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Line]]:
    """Run the program once, and yield its lines. The program needs its own broker, because it lists everything."""
    require(ADMIN)
    if given_address() is not None:
        pytest.skip(f"needs a broker of its own: {COMMAND} can start it")
    process = BrokerProcess(tmp_path_factory.mktemp("java-admin"), [*profile(), "--config", str(CONFIG)])
    yield run(process.address)
    process.stop(40)


def profile() -> list[str]:
    """Return options that make Pulsarium a released version, as the recorded broker was."""
    return ["--profile", "pulsar-4.2"] if is_pulsarium() else []


def of(section: str, lines: list[Line]) -> list[Line]:
    return [line for line in lines if line["section"] == section]


@pytest.mark.parametrize(
    "section",
    [pytest.param(section, marks=[pytest.mark.req(*rows)] * bool(rows)) for section, rows in SECTIONS.items()],
)
def test_calls_and_answers_are_those_of_a_real_broker(section: str, lines: list[Line]) -> None:
    assert_as_recorded(section, lines)


def assert_as_recorded(section: str, lines: list[Line]) -> None:
    failures = [line["failed"] for line in of(section, lines) if "failed" in line]
    assert not failures, "\n".join(failures)
    wanted = of(section, [json.loads(line) for line in EXPECTED.read_text().splitlines()])
    got = list(comparable_calls(of(section, lines)))
    found = [
        f"{one['call']}{one['arguments']}{line}"
        for one, other in zip(wanted, got, strict=False)
        for line in differences(one, other)
    ]
    assert not found, "\n".join(found)
    assert len(got) == len(wanted)


def test_no_section_is_left_out(lines: list[Line]) -> None:
    assert [name for name, _ in groupby(line["section"] for line in lines)] == [*SECTIONS, "end"]


def test_every_method_succeeds_at_least_once(lines: list[Line]) -> None:
    unanswered = {kind: set(names) for kind, names in lines[-1]["unanswered"].items() if names}
    assert unanswered == {kind: set(reasons) for kind, reasons in UNANSWERED.items()}


@pytest.mark.req("S415-39")
def test_java_is_refused_what_its_role_may_not_do(launch: Launch, tmp_path: Path) -> None:
    broker = launch(*profile(), "--config", str(secured_config(tmp_path)))
    assert_as_recorded("authorization", run(broker.address, token("admin"), token("user")))
