"""Render the findings as one HTML page that loads nothing from elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape

from pulsarium.capture.lint.checker import ALL_RULES, BrokenRule
from pulsarium.capture.lint.rule import LintRule

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ --back: #f6f7f9; --card: #fff; --line: #e2e5ea; --text: #1b1f24; --soft: #667080; --blue: #1f6fe0;
  --warn: #b15c00; --bad: #b3261e; --good: #1a7f43 }}
@media (prefers-color-scheme: dark) {{
  :root {{ --back: #14171b; --card: #1d2126; --line: #30363d; --text: #e4e8ee; --soft: #97a1af; --blue: #6aa8ff;
    --warn: #f0a64a; --bad: #ff8a80; --good: #5cc98a }}
}}
* {{ box-sizing: border-box }}
body {{ margin: 0; background: var(--back); color: var(--text); font: 15px/1.45 system-ui, sans-serif }}
main {{ max-width: 72rem; margin: 0 auto; padding: 1rem }}
h1 {{ font-size: 1.35rem; margin: 0; color: var(--blue) }}
h2 {{ font-size: 1rem; margin: 0; overflow-wrap: anywhere }}
h2 small, p small, .soft {{ color: var(--soft); font-weight: normal }}
article {{ background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem;
  margin: .8rem 0 }}
p {{ margin: .3rem 0 }}
.error {{ color: var(--bad) }} .warning {{ color: var(--warn) }} .good {{ color: var(--good) }}
.table {{ overflow-x: auto }}
table {{ border-collapse: collapse; width: 100%; margin-top: .6rem; font-size: .9rem }}
th, td {{ text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; border-top: 1px solid var(--line);
  overflow-wrap: anywhere }}
th {{ color: var(--soft); font-weight: normal }}
td.number {{ font-variant-numeric: tabular-nums; white-space: nowrap }}
</style>
</head>
<body>
<main>
"""
_FOOT = "</main>\n</body>\n</html>"
_COLUMNS = ("time", "client", "where", "topic", "what")


def page(found: Sequence[BrokenRule], counts: Counter[str]) -> str:
    """Return a page with a card for each broken rule, errors and frequent ones first."""
    of_rule: dict[str, list[BrokenRule]] = {}
    for each in found:
        of_rule.setdefault(each.rule, []).append(each)
    order = sorted(counts, key=lambda name: (ALL_RULES[name].severity.value != "error", -counts[name], name))
    total = sum(counts.values())
    said = f"{total} violations of {len(counts)} rules" if total else "No rule was broken"
    cards = (_card(ALL_RULES[name], counts[name], of_rule.get(name, [])) for name in order)
    return _page("Protocol violations", f'<p class="{"" if total else "good"}">{said}.</p>', cards)


def rules_page() -> str:
    """Return a page of all rules."""
    return _page("Rules of the protocol", f"<p>{len(ALL_RULES)} rules.</p>", map(_rule, ALL_RULES.values()))


def _page(title: str, said: str, cards: Iterable[str]) -> str:
    return "".join((_HEAD.format(title=escape(title)), f"<h1>{escape(title)}</h1>\n{said}\n", *cards, _FOOT))


def _rule(rule: LintRule, count: str = "") -> str:
    severity = rule.severity.value
    return (
        f'<article id="{escape(rule.name)}">\n<h2>{escape(rule.name)} <small class="{severity}">{severity}</small> '
        f"<small>{escape(count or rule.about.value)}</small></h2>\n<p>{escape(rule.demands)} "
        f'<small>{escape(rule.reference)}</small></p>\n<p class="soft">{escape(rule.mend)}</p>\n'
        + ("" if count else "</article>\n")
    )


def _card(rule: LintRule, count: int, found: Sequence[BrokenRule]) -> str:
    return "".join((_rule(rule, f"{count} times"), '<div class="table">', *_table(found), "</div>\n</article>\n"))


def _table(found: Sequence[BrokenRule]) -> Iterator[str]:
    yield "<table>\n<tr>" + "".join(f"<th>{name}</th>" for name in _COLUMNS) + "</tr>\n"
    for each in found:
        where = f"{each.capture} " if each.capture else ""
        cells = (
            f"{each.client} {each.client_version}".strip() or "unknown",
            f"{where}connection {each.connection}, frame {each.frame}",
            each.topic,
            f"{each.side}: {each.detail}",
        )
        row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        yield f'<tr><td class="number">{_time(each.at_ms)}</td>{row}</tr>\n'
    yield "</table>\n"


def _time(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError, OSError):
        return ""
