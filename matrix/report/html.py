"""The matrix as one HTML page that needs nothing else; its cells lead to their logs and captures."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from pulsarium.matrix.cell import Outcome, Result
from pulsarium.matrix.report.table import Table, behind

_SIGNS = {
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
    legend = " · ".join(f"{sign} {outcome}" for outcome, sign in _SIGNS.items())
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n<body>\n'
        f"<h1>{escape(title)}</h1>\n<p>{behind(table.results)}<br><small>{legend}; the pointer on a cell shows its "
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
    return f'<td class="{result.outcome}" title="{reason}"><b>{_SIGNS[result.outcome]}</b>{seconds}{links}</td>'
