"""Two dozen cells of docs/matrix.md, run again: the page still tells the truth."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pulsarium.matrix.brokers import Mask
from pulsarium.matrix.clients import CLIENTS
from pulsarium.matrix.report import read_markdown
from pulsarium.matrix.runner import Run, run
from pulsarium.matrix.scenarios import SCENARIOS, matching
from tests.foreign.toolchains import in_ci

RECORD = Path(__file__).parents[2] / "docs" / "matrix.md"
# For each client, quick cells with behavior of its own. A few cells are slow (a JVM, time-outs).
CHOSEN = {
    "python": ["batch-index-ack", "chunking", "key-shared", "table-view", "schema-json", "terminated"],
    "go": ["encryption", "retry-letter", "message-index", "transactions", "unload"],
    "rust": ["compression-zstd", "pattern", "partitioned", "redelivery-count"],
    "java": ["ack-receipt", "compaction", "tls"],
    "websocket": ["encryption", "batching"],
    "node": ["dead-letter", "zero-queue"],
    "ours": ["deduplication", "brokers"],
}


def recorded(profile: str) -> dict[tuple[str, str], str]:
    return {
        (scenario, title.removesuffix(f", {profile}")): str(outcome)
        for (scenario, title), outcome in read_markdown(RECORD.read_text()).items()
        if title.endswith(f", {profile}")
    }


def test_the_record_has_every_scenario_and_four_languages() -> None:
    cells = read_markdown(RECORD.read_text())
    assert {scenario for scenario, _ in cells} == {scenario.name for scenario in SCENARIOS}
    languages = {re.split(r"[ ,]", title)[0] for (_, title), outcome in cells.items() if outcome != "skipped"}
    assert languages >= {"Python", "Java", "Go", "Rust"}


def test_two_dozen_cells_are_chosen() -> None:
    assert sum(map(len, CHOSEN.values())) == 24
    assert all(matching(names) for names in CHOSEN.values())


@pytest.mark.heavy
@pytest.mark.foreign
@pytest.mark.parametrize("client", CHOSEN)
def test_cells_are_as_recorded(client: str, tmp_path: Path) -> None:
    one = CLIENTS[client]
    if reason := one.missing() or ("" if one.is_built else f'run "scripts/setup --foreign": {client} is not built'):
        (pytest.fail if in_ci() else pytest.skip)(reason)
    record = recorded("pip")
    results = run(Run(matching(CHOSEN[client]), [client], ["pip"], [Mask("none")], tmp_path))
    found = {(result.cell.scenario, one.title): f"{result.outcome} {result.reason}".strip() for result in results}
    assert {cell: text.split()[0] for cell, text in found.items()} == {cell: record[cell] for cell in found}, found
