"""Write the results of a run as a page, as Markdown, as JUnit XML and as the text of a badge.

`python -m pulsarium.conformance.report docs FOLDER...` writes docs/matrix.md and docs/matrix-scenarios.md of the runs
in these folders.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import quote
from xml.etree import ElementTree as ET

from pulsarium.capture.reports import printable_xml
from pulsarium.conformance.columns import NO_MASK, Cell, Column, in_order, read_cells
from pulsarium.conformance.run import Verdict, spec_of
from pulsarium.conformance.scenario import Scenario
from pulsarium.conformance.scenarios import SCENARIOS

_LONG: Final = 240
SIGNS: Final = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.ERROR: "!", Verdict.UNSUPPORTED: "–"}


@dataclass(frozen=True)
class Table:
    """Results by scenario and column, both in the order of the table of scenarios and of the run."""

    cells: Sequence[Cell]

    @cached_property
    def columns(self) -> Sequence[Column]:
        return list(dict.fromkeys(each.column for each in self.cells))

    @cached_property
    def profiles(self) -> Sequence[str]:
        return list(dict.fromkeys(each.profile for each in self.columns))

    @cached_property
    def groups(self) -> Mapping[str, Sequence[Scenario]]:
        """Return the scenarios of the run by subject."""
        named, found = {each.scenario for each in self.cells}, defaultdict(list)
        for scenario in SCENARIOS.values():
            if scenario.name in named:
                found[scenario.subject.replace(".", ", ")].append(scenario)
        return found

    @cached_property
    def _placed(self) -> Mapping[tuple[str, Column], Cell]:
        return {(each.scenario, each.column): each for each in self.cells}

    def at(self, scenario: Scenario, column: Column) -> Cell | None:
        return self._placed.get((scenario.name, column))

    def title(self, column: Column) -> str:
        """Return a client's name and version, with profile and mask where the run has several of them."""
        return self._named(column, *([column.profile] if len(self.profiles) > 1 else []))

    def short_title(self, column: Column) -> str:
        """Return a title for a table of one profile."""
        return self._named(column)

    def _named(self, column: Column, *more: str) -> str:
        client = next(each.title for each in self.cells if each.column == column)
        return ", ".join([client, *more, *([column.mask] if column.mask != NO_MASK else [])])

    def counts(self, column: Column, scenarios: Iterable[Scenario] | None = None) -> Counter[Verdict]:
        """Return the number of results of each verdict, of some scenarios or of all."""
        names = None if scenarios is None else {each.name for each in scenarios}
        cells = (each for each in self.cells if each.column == column and (names is None or each.scenario in names))
        return Counter(each.verdict for each in cells)

    @cached_property
    def reasons(self) -> Mapping[Column, Mapping[str, Sequence[str]]]:
        """Return the scenarios that did not pass for each reason, by column."""
        found: dict[Column, dict[str, list[str]]] = {}
        for each in self.cells:
            if each.is_bad:
                found.setdefault(each.column, {}).setdefault(each.reason, []).append(each.scenario)
        return found


def summary(cells: Iterable[Cell]) -> str:
    """Return the number of results of each verdict."""
    counts = Counter(each.verdict for each in cells)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]) or "no scenarios"


def badge(cells: Sequence[Cell]) -> str:
    """Return the number of passed results of all, such as "218 of 231"."""
    return f"{sum(each.verdict is Verdict.PASS for each in cells)} of {len(cells)}"


def contradictions(cells: Iterable[Cell]) -> list[str]:
    """Return the contradictions between texts that a run touches, and the release whose text it follows."""
    told = ((SCENARIOS[each.scenario].contradiction, spec_of(each.column.profile)) for each in cells)
    return list(dict.fromkeys(f"run as {spec}: {note}" for note, spec in told if note))


# ---- the page

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --pass: #2a8a3e; --fail: #c62828; --error: #b25e00; --none: #888; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } p { margin: .3rem 0 1rem; }
.wide { overflow: auto; max-height: 85vh; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .35rem .7rem; border-bottom: 1px solid var(--line); text-align: center; }
thead th { position: sticky; top: 0; background: Canvas; z-index: 1; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: Canvas; min-width: 20rem; }
thead th:first-child { z-index: 2; } tbody th { padding-top: 1rem; font-size: 1.05rem; }
td small, th small { display: block; font-weight: normal; opacity: .75; }
td b { display: inline-block; min-width: 1.7em; padding: .05rem .35rem; border-radius: 5px; color: #fff; }
.pass b { background: var(--pass); } .fail b { background: var(--fail); } .error b { background: var(--error); }
.unsupported b { background: none; color: var(--none); } td a { text-decoration: none; font-size: .8em; margin: .3em; }
"""


def html(cells: Sequence[Cell]) -> str:
    """Return a page whose cells link to the frames and logs beside it."""
    table = Table(cells)
    head = "".join(
        f"<th>{escape(table.title(each))}<small>{table.counts(each)[Verdict.PASS]} pass</small></th>"
        for each in table.columns
    )
    rows = []
    for subject, scenarios in table.groups.items():
        counted = "".join(f"<th><small>{_share(table.counts(each, scenarios))}</small></th>" for each in table.columns)
        rows.append(f"<tr><th>{escape(subject)}</th>{counted}</tr>\n")
        rows += [_row(table, each) for each in scenarios]
    notes = "".join(f"<li>{escape(each)}</li>\n" for each in contradictions(cells))
    notes = f"<p>Texts of the specification contradict each other:</p><ul>\n{notes}</ul>\n" if notes else ""
    bad = "".join(_failed(table, column) for column in table.reasons)
    legend = " · ".join(f"{sign} {verdict}" for verdict, sign in SIGNS.items())
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Conformance of Pulsar clients</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n<body>\n'
        f"<h1>Conformance of Pulsar clients</h1>\n<p>{summary(cells)}<br><small>{legend} · ≡ log · ⇄ frames; point at"
        f' a cell for its reason</small></p>\n{notes}{bad}<div class="wide"><table>\n'
        f"<thead><tr><th>scenario</th>{head}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody></table></div>\n"
        "</body>\n</html>\n"
    )


def _failed(table: Table, column: Column) -> str:
    reasons = table.reasons[column]
    lines = "".join(
        f"<li>{', '.join(f'<code>{name}</code>' for name in names)}: {escape(reason)}</li>\n"
        for reason, names in reasons.items()
    )
    number = sum(map(len, reasons.values()))
    return f"<details><summary>{escape(table.title(column))}: {number} failed</summary><ul>\n{lines}</ul></details>\n"


def _row(table: Table, scenario: Scenario) -> str:
    about = f"{escape(scenario.sentence)} ({scenario.requirement}, {escape(scenario.source)})"
    cells = "".join(_cell(table.at(scenario, each)) for each in table.columns)
    return f"<tr><td><code>{scenario.name}</code><small>{about}</small></td>{cells}</tr>\n"


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td></td>"
    links = "".join(
        f'<a href="{escape(quote(file))}" title="{name}">{sign}</a>'
        for name, sign, file in (("log", "≡", cell.log), ("frames", "⇄", cell.capture))
        if file
    )
    told = "; ".join([cell.reason or str(cell.verdict), *(f"broken rule {each}" for each in cell.rules)])
    return f'<td class="{cell.verdict}" title="{escape(told, quote=True)}"><b>{SIGNS[cell.verdict]}</b>{links}</td>'


def _share(counts: Counter[Verdict]) -> str:
    """Return the passed part of what the client supports."""
    played = counts.total() - counts[Verdict.UNSUPPORTED]
    return f"{counts[Verdict.PASS]}/{played}" if played else "–"


# ---- Markdown


def markdown(cells: Sequence[Cell]) -> str:
    """Return the overview and all scenarios, with a final line feed."""
    table = Table(cells)
    return f"# Conformance of Pulsar clients\n\n{overview(table)}\n{failures(table)}\n{details(table)}"


def overview(table: Table) -> str:
    """Return a table of subjects for each profile: passed scenarios of those that the client supports."""
    parts = [f"{summary(table.cells)}.\n"]
    for profile in table.profiles:
        columns = [each for each in table.columns if each.profile == profile]
        rows = [["subject", *(table.short_title(each) for each in columns)], ["---", *(":-:" for _ in columns)]]
        for subject, scenarios in table.groups.items():
            shares = [_emphasized(table.counts(each, scenarios)) for each in columns]
            if any(share != "–" for share in shares):
                rows.append([f"{subject} ({len(scenarios)})", *shares])
        rows.append(["**all**", *(_emphasized(table.counts(each)) for each in columns)])
        parts.append(f"### Profile {profile}\n\n{_lines(rows)}")
    return "\n".join(parts)


def failures(table: Table) -> str:
    """Return each reason for a failure, by client."""
    found: dict[str, dict[str, dict[str, None]]] = {}  # without the profile: each scenario once
    for column, reasons in table.reasons.items():
        told = found.setdefault(table.short_title(column), {})
        for reason, names in reasons.items():
            told.setdefault(_escaped(reason), {}).update(dict.fromkeys(f"`{name}`" for name in names))
    lines = ["### What failed\n"]
    for title, told in found.items():
        lines.append(f"**{title}**\n")
        lines += [f"- {', '.join(names)}: {reason}" for reason, names in told.items()]
        lines.append("")
    return "\n".join(lines) if found else ""


def details(table: Table) -> str:
    """Return a table of scenarios for each profile."""
    legend = ", ".join(f"{sign} {verdict}" for verdict, sign in SIGNS.items())
    parts = [f"{legend}.\n"]
    for profile in table.profiles:
        columns = [each for each in table.columns if each.profile == profile]
        rows = [["scenario", *(table.short_title(each) for each in columns)], ["---", *(":-:" for _ in columns)]]
        for subject, scenarios in table.groups.items():
            rows.append([f"**{subject}**", *("" for _ in columns)])
            rows += [[f"`{each.name}`", *(_sign(table.at(each, column)) for column in columns)] for each in scenarios]
        parts.append(f"### Profile {profile}\n\n{_lines(rows)}")
    return "\n".join(parts)


def _emphasized(counts: Counter[Verdict]) -> str:
    share = _share(counts)
    return f"**{share}**" if counts[Verdict.FAIL] or counts[Verdict.ERROR] else share


def _sign(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return f"**{SIGNS[cell.verdict]}**" if cell.is_bad else SIGNS[cell.verdict]


def _lines(rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _escaped(text: str) -> str:
    """Return a text without Markdown, and without the end of a long one."""
    short = text if len(text) <= _LONG else f"{text[:_LONG]}..."
    return re.sub(r"([|\[\]*_`])", r"\\\1", short).replace("<", "&lt;")


# ---- JUnit


def junit(cells: Sequence[Cell]) -> str:
    """Return JUnit XML with a suite for each column."""
    table, tags = Table(cells), {Verdict.FAIL: "failure", Verdict.ERROR: "error", Verdict.UNSUPPORTED: "skipped"}
    root = ET.Element("testsuites", name="conformance")
    for column in table.columns:
        counts, own = table.counts(column), [each for each in cells if each.column == column]
        suite = ET.SubElement(
            root,
            "testsuite",
            name=f"{table.title(column)} on {column.profile}",
            tests=str(len(own)),
            failures=str(counts[Verdict.FAIL]),
            errors=str(counts[Verdict.ERROR]),
            skipped=str(counts[Verdict.UNSUPPORTED]),
            time=f"{sum(each.seconds for each in own):.3f}",
        )
        for each in own:
            scenario = SCENARIOS[each.scenario]
            named = f"conformance.{scenario.requirement}"
            case = ET.SubElement(suite, "testcase", classname=named, name=scenario.name, time=f"{each.seconds:.3f}")
            if each.verdict in tags:
                told = ET.SubElement(case, tags[each.verdict], message=printable_xml(each.reason))
                told.text = printable_xml(f"{scenario.sentence} ({scenario.source})")
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


# ---- files


def write(cells: Sequence[Cell], folder: Path) -> list[Path]:
    """Write all reports, and return their paths."""
    told = in_order(cells)
    texts = {
        "conformance.html": html(told),
        "conformance.md": markdown(told),
        "conformance.xml": junit(told),
        "badge.txt": badge(told) + "\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in texts]


_MATRIX: Final = """\
# Clients and what works with them

`scripts/matrix` writes this page: the scenarios of the [conformance kit](conformance.md) with many releases of many
clients, on brokers of Pulsarium. A cell has the passed scenarios of those that the client supports; bold ones have
failures, with reasons below. [All scenarios](matrix-scenarios.md) are on a page of their own. `pulsarium conformance
client` makes such a table for the clients of your machine, with links from each cell to the frames between client and
broker.

"""
_SCENARIOS: Final = """\
# Clients and scenarios

Every scenario of [the overview](matrix.md) with every client. The [conformance kit](conformance.md) has the sentence
and the source of each.

"""


def docs(cells: Sequence[Cell]) -> Mapping[str, str]:
    """Return the texts of the documentation's pages by name."""
    table = Table(in_order(cells))
    return {
        "matrix.md": f"{_MATRIX}{overview(table)}\n{failures(table)}".rstrip("\n") + "\n",
        "matrix-scenarios.md": _SCENARIOS + details(table),
    }


def main(arguments: Sequence[str]) -> None:
    """Write the documentation's pages from arguments such as docs FOLDER FOLDER."""
    target, *folders = map(Path, arguments)
    cells = [cell for folder in folders for cell in read_cells(folder)]
    for name, text in docs(cells).items():
        (target / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
