"""The matrix as Markdown: short cells, and below why some of them did not pass."""

from __future__ import annotations

from collections.abc import Iterable

from pulsarium.matrix.cell import Outcome, Result
from pulsarium.matrix.clients import CLIENTS
from pulsarium.matrix.report.table import Table, behind

SIGNS = {
    Outcome.PASS: "✓",
    Outcome.FAIL: "**✗**",
    Outcome.TIMEOUT: "**⧖**",
    Outcome.UNSUPPORTED: "–",
    Outcome.SKIPPED: "·",
}


def markdown(table: Table) -> str:
    """Ends with a line feed."""
    rows = [
        ["scenario", "what it shows", *(table.title(column) for column in table.columns)],
        ["---", "---", *(":-:" for _ in table.columns)],
    ]
    for scenario in table.scenarios:
        results = (table.at(scenario, column) for column in table.columns)
        signs = [SIGNS[result.outcome] if result else "" for result in results]
        rows.append([f"`{scenario.name}`", _escaped(scenario.contract), *signs])
    legend = ", ".join(f"{sign} {outcome}" for outcome, sign in SIGNS.items())
    parts = [f"{behind(table.results)}.\n\n{legend}.\n", "".join(f"| {' | '.join(row)} |\n" for row in rows)]
    for heading, outcomes in (
        ("Failed", (Outcome.FAIL, Outcome.TIMEOUT)),
        ("Not supported", (Outcome.UNSUPPORTED,)),
        ("Not run", (Outcome.SKIPPED,)),
    ):
        if reasons := _reasons(result for result in table.results if result.outcome in outcomes):
            parts.append(f"{heading}:\n\n{reasons}")
    return "\n".join(parts)


def read_markdown(text: str) -> dict[tuple[str, str], Outcome]:
    """What `markdown` wrote: (scenario, title of the column) -> outcome."""
    outcomes = {sign: outcome for outcome, sign in SIGNS.items()}
    rows = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in text.splitlines() if line[:2] == "| "]
    titles = rows[0][2:]
    return {
        (row[0].strip("`"), title): outcomes[sign]
        for row in rows[2:]
        for title, sign in zip(titles, row[2:], strict=True)
        if sign
    }


def _reasons(results: Iterable[Result]) -> str:
    """Each reason once, with the clients and the scenarios that it holds for."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for result in results:
        clients = found.setdefault(result.reason, {})
        clients.setdefault(CLIENTS[result.cell.client].title, {})[result.cell.scenario] = None
    lines = []
    for reason, clients in found.items():
        where = (f"{title}: {_names(list(names))}" for title, names in clients.items())
        lines.append(f"- {_escaped(reason)} ({'; '.join(where)})\n")
    return "".join(lines)


def _names(names: list[str]) -> str:
    """One reason may hold for all scenarios of a client that cannot run at all."""
    return "everything" if len(names) > 10 else ", ".join(f"`{name}`" for name in names)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
