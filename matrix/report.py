"""Write the results of a run as the matrix: matrix.html, matrix.md, matrix.json, and matrix.parquet with pyarrow.

`python -m pulsarium.matrix.report matrix.json` prints the page of the documentation.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib.util import find_spec
from itertools import dropwhile, takewhile
from pathlib import Path
from urllib.parse import quote

from pulsarium.matrix.cell import Column, Outcome, Result
from pulsarium.matrix.clients import CLIENTS
from pulsarium.matrix.scenarios import SCENARIOS, Scenario


@dataclass(frozen=True)
class Table:
    """Results in the order of their output."""

    results: Sequence[Result]

    @cached_property
    def columns(self) -> list[Column]:
        return list(dict.fromkeys(result.cell.column for result in self.results))

    @cached_property
    def scenarios(self) -> list[Scenario]:
        named = {result.cell.scenario for result in self.results}
        return [scenario for scenario in SCENARIOS if scenario.name in named]

    @cached_property
    def _placed(self) -> dict[tuple[str, Column], Result]:
        return {(result.cell.scenario, result.cell.column): result for result in self.results}

    def at(self, scenario: Scenario, column: Column) -> Result | None:
        return self._placed.get((scenario.name, column))

    def title(self, column: Column) -> str:
        """Return a client's name, with profile and mask when a run has several of them."""
        parts = [CLIENTS[column.client].title]
        if len({each.profile for each in self.columns}) > 1:
            parts.append(column.profile)
        if len({each.mask for each in self.columns}) > 1:
            parts.append(column.mask)
        return ", ".join(parts)

    def counts(self, column: Column) -> Counter[Outcome]:
        return Counter(result.outcome for result in self.results if result.cell.column == column)


def behind(results: Iterable[Result]) -> str:
    """Return the counts of outcomes as text, such as "5 pass, 1 fail"."""
    counts = Counter(result.outcome for result in results)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome])


MARKDOWN_SIGNS = {
    Outcome.PASS: "✓",
    Outcome.FAIL: "**✗**",
    Outcome.TIMEOUT: "**⧖**",
    Outcome.UNSUPPORTED: "–",
    Outcome.SKIPPED: "·",
}


def markdown(table: Table) -> str:
    """Return the matrix as Markdown, with a final line feed."""
    rows = [
        ["scenario", "what it shows", *(table.title(column) for column in table.columns)],
        ["---", "---", *(":-:" for _ in table.columns)],
    ]
    for scenario in table.scenarios:
        results = (table.at(scenario, column) for column in table.columns)
        signs = [MARKDOWN_SIGNS[result.outcome] if result else "" for result in results]
        rows.append([f"`{scenario.name}`", _escaped(scenario.contract), *signs])
    legend = ", ".join(f"{sign} {outcome}" for outcome, sign in MARKDOWN_SIGNS.items())
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
    """Return the outcomes by scenario and title of the column, from the first table of a text."""
    outcomes = {sign: outcome for outcome, sign in MARKDOWN_SIGNS.items()}
    lines = takewhile(lambda line: line[:2] == "| ", dropwhile(lambda line: line[:2] != "| ", text.splitlines()))
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    titles = rows[0][2:]
    return {
        (row[0].strip("`"), title): outcomes[sign]
        for row in rows[2:]
        for title, sign in zip(titles, row[2:], strict=True)
        if sign
    }


def _reasons(results: Iterable[Result]) -> str:
    """Return each reason once, with its clients and scenarios."""
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
    """Return the names of scenarios, or "everything" for a client that cannot run at all."""
    return "everything" if len(names) > 10 else ", ".join(f"`{name}`" for name in names)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


_HTML_SIGNS = {
    Outcome.PASS: "✓",
    Outcome.FAIL: "✗",
    Outcome.TIMEOUT: "⧖",
    Outcome.UNSUPPORTED: "–",
    Outcome.SKIPPED: "·",
}

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --pass: #2a8a3e; --fail: #c62828; --timeout: #c77700; --none: #888; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } p { margin: .3rem 0 1rem; }
.wide { overflow: auto; max-height: 85vh; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .35rem .7rem; border-bottom: 1px solid var(--line); text-align: center; }
th { position: sticky; top: 0; background: Canvas; z-index: 1; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: Canvas; }
th:first-child { z-index: 2; }
td:first-child code { font-weight: 600; } td:first-child small { display: block; opacity: .75; }
td b { display: inline-block; min-width: 1.7em; padding: .05rem .35rem; border-radius: 5px; color: #fff; }
.pass b { background: var(--pass); } .fail b { background: var(--fail); } .timeout b { background: var(--timeout); }
.unsupported b, .skipped b { background: none; color: var(--none); }
td a { text-decoration: none; font-size: .8em; margin-left: .35em; } td small { opacity: .7; }
details { margin: 1rem 0; } summary { cursor: pointer; font-weight: 600; }
.counts small { display: block; font-weight: normal; opacity: .75; }
"""


def html(table: Table, title: str = "Compatibility matrix") -> str:
    head = "".join(
        f'<th class="counts">{escape(table.title(column))}<small>{table.counts(column)[Outcome.PASS]} pass</small></th>'
        for column in table.columns
    )
    rows = []
    for scenario in table.scenarios:
        cells = "".join(_cell(table.at(scenario, column)) for column in table.columns)
        feature = f" · {escape(scenario.feature)}" if scenario.feature else ""
        name = f"<code>{escape(scenario.name)}</code>{feature}<small>{escape(scenario.contract)}</small>"
        rows.append(f"<tr><td>{name}</td>{cells}</tr>\n")
    bad = [result for result in table.results if result.outcome.is_bad]
    reasons = "".join(f"<li><code>{escape(str(one.cell))}</code>: {escape(one.reason)}</li>\n" for one in bad)
    failed = f"<details open><summary>Failed</summary><ul>\n{reasons}</ul></details>\n" if bad else ""
    legend = " · ".join(f"{sign} {outcome}" for outcome, sign in _HTML_SIGNS.items())
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n<body>\n'
        f"<h1>{escape(title)}</h1>\n<p>{behind(table.results)}<br><small>{legend}; point at a cell for its "
        f'reason</small></p>\n{failed}<div class="wide"><table>\n<thead><tr><th>scenario</th>{head}</tr></thead>\n'
        f"<tbody>\n{''.join(rows)}</tbody></table></div>\n</body>\n</html>\n"
    )


def _cell(result: Result | None) -> str:
    if result is None:
        return "<td></td>"
    links = "".join(
        f'<a href="{escape(quote(file))}" title="{name}">{sign}</a>'
        for name, sign, file in (("log", "≡", result.log), ("capture", "⇄", result.capture))
        if file
    )
    seconds = f"<small> {result.seconds:.1f} s</small>" if result.seconds >= 1 else ""
    reason = escape(result.reason or str(result.outcome), quote=True)
    return f'<td class="{result.outcome}" title="{reason}"><b>{_HTML_SIGNS[result.outcome]}</b>{seconds}{links}</td>'


def write(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write all files, and return their paths."""
    table = Table(results)
    texts = {
        "matrix.html": html(table),
        "matrix.md": f"# Compatibility matrix\n\n{markdown(table)}",
        "matrix.json": "[\n" + ",\n".join(json.dumps(result.row()) for result in results) + "\n]\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    written = [folder / name for name in texts]
    if find_spec("pyarrow") is not None:
        _parquet(results, folder / "matrix.parquet")
        written.append(folder / "matrix.parquet")
    return written


def _parquet(results: Sequence[Result], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = pa.string()
    names = ("scenario", "client", "profile", "mask", "outcome", "reason", "capture", "log")
    schema = pa.schema([*((name, text) for name in names), ("seconds", pa.float64())])
    pq.write_table(pa.Table.from_pylist([result.row() for result in results], schema=schema), path)


_PAGE_HEAD = """\
# Clients and what works with them

`scripts/matrix` writes this page: small programs of each client (`matrix/`) run against a Pulsarium broker, on both
profiles. Reasons for cells that did not pass follow the table. `pulsarium matrix` makes such a table for the clients
of your machine, with links from each cell to the frames between client and broker.

"""


def page(results: Sequence[Result]) -> str:
    return _PAGE_HEAD + markdown(Table(results))


if __name__ == "__main__":
    rows = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.stdout.write(page([Result.of_row(row) for row in rows]))
