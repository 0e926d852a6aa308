"""Write the results of a run as HTML and as JUnit XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from xml.etree import ElementTree as ET

from pulsarium.capture.reports import printable_xml
from pulsarium.conformance.protocol import Client
from pulsarium.conformance.run import Result, Verdict

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1c2733}
table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #dde3ea;padding:.45rem .6rem;text-align:left;
vertical-align:top}.pass{color:#17703b}.fail,.error{color:#b3261e;font-weight:600}.unsupported{color:#75808c}
small{color:#5b6875;display:block}
"""


def summary(results: Sequence[Result]) -> str:
    """Return the number of results of each verdict."""
    counts = Counter(each.verdict for each in results)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]) or "no scenarios"


def contradictions(results: Sequence[Result]) -> list[str]:
    """Return the contradictions between texts that the scenarios of a run touch."""
    return list(dict.fromkeys(each.scenario.contradiction for each in results if each.scenario.contradiction))


def html(results: Sequence[Result], client: Client | None, spec: str) -> str:
    """Return a page of the results."""
    name = "unknown client" if client is None else f"{client.name} {client.version}".strip()
    head = f"<h1>Conformance of {escape(name)}</h1><p>Specification {escape(spec)}: {summary(results)}.</p>"
    notes = "".join(f"<li>{escape(each)}</li>" for each in contradictions(results))
    if notes:
        head += f"<p>Texts of the specification contradict each other. This run follows {escape(spec)}:</p>"
        head += f"<ul>{notes}</ul>"
    rows = "".join(_row(each) for each in results)
    table = f"<table><tr><th>scenario</th><th>result</th><th>sentence</th><th>seconds</th></tr>{rows}</table>"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Conformance of {escape(name)}</title>'
        f"<style>{_STYLE}</style>{head}{table}</html>\n"
    )


def _row(result: Result) -> str:
    what = result.scenario
    reason = f"<small>{escape(result.reason)}</small>" if result.reason else ""
    rules = f"<small>broken rules: {escape(', '.join(result.rules))}</small>" if result.rules else ""
    return (
        f'<tr><td>{what.name}</td><td class="{result.verdict}">{result.verdict}{reason}{rules}</td>'
        f"<td>{escape(what.sentence)}<small>{what.requirement}, {escape(what.source)}</small></td>"
        f"<td>{result.seconds:.1f}</td></tr>"
    )


def junit(results: Sequence[Result], client: Client | None, spec: str) -> str:
    """Return the results as JUnit XML."""
    counts = Counter(each.verdict for each in results)
    suite = ET.Element(
        "testsuite",
        name=f"conformance {client.name if client else ''} {spec}".replace("  ", " "),
        tests=str(len(results)),
        failures=str(counts[Verdict.FAIL]),
        errors=str(counts[Verdict.ERROR]),
        skipped=str(counts[Verdict.UNSUPPORTED]),
        time=f"{sum(each.seconds for each in results):.3f}",
    )
    tags = {Verdict.FAIL: "failure", Verdict.ERROR: "error", Verdict.UNSUPPORTED: "skipped"}
    for each in results:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=f"conformance.{each.scenario.requirement}",
            name=each.scenario.name,
            time=f"{each.seconds:.3f}",
        )
        if each.verdict in tags:
            told = ET.SubElement(case, tags[each.verdict], message=printable_xml(each.reason))
            told.text = printable_xml(f"{each.scenario.sentence} ({each.scenario.source})")
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
