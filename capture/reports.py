"""Write the findings of the linter and of the history checker as SARIF and as JUnit XML."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from pulsarium.capture.lint.rule import Requirement

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding, for tools that know no wire.

    capture: file of the finding, or "". frames: connection and number of each frame, the decisive one last.
    """

    rule: str
    text: str
    capture: str
    frames: tuple[tuple[int, int], ...]


def sarif(tool: str, version: str, rules: Mapping[str, Requirement], found: Sequence[Problem]) -> str:
    """Return the findings as SARIF 2.1.0."""
    names = list(rules)
    driver = {
        "name": f"pulsarium {tool}",
        "version": version,
        "rules": [
            {
                "id": each.name,
                "shortDescription": {"text": each.demands},
                "help": {"text": f"{each.mend} ({each.reference})"},
                "defaultConfiguration": {"level": each.severity.value},
                "properties": {"about": each.about.value, "reference": each.reference},
            }
            for each in rules.values()
        ],
    }
    results = [
        {
            "ruleId": each.rule,
            "ruleIndex": names.index(each.rule),
            "level": rules[each.rule].severity.value,
            "message": {"text": each.text},
            "locations": [_location(each, *frame) for frame in each.frames[-1:]],
            "relatedLocations": [_location(each, *frame) for frame in each.frames[:-1]],
        }
        for each in found
    ]
    report = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(report, indent=2)


def _location(problem: Problem, connection: int, frame: int) -> dict[str, Any]:
    name = f"connection {connection}/frame {frame}"
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": name, "kind": "element"}]}
    if problem.capture:
        path = PurePath(problem.capture)
        uri = path.as_uri() if path.is_absolute() else path.as_posix()
        location["physicalLocation"] = {"artifactLocation": {"uri": uri}}
    return location


def junit(
    tool: str, rules: Mapping[str, Requirement], found: Sequence[Problem], skipped: Mapping[str, str] | None = None
) -> str:
    """Return a JUnit test case for each rule. `skipped` has the reason why a rule was not judged, by rule."""
    skipped = skipped or {}
    broken = {each.rule for each in found}
    passed_over = {name for name in skipped if name not in broken}
    suite = ET.Element(
        "testsuite",
        name=f"pulsarium {tool}",
        tests=str(len(rules)),
        failures=str(len(broken)),
        errors="0",
        skipped=str(len(passed_over)),
    )
    for name, rule in rules.items():
        case = ET.SubElement(suite, "testcase", classname=f"pulsarium.{tool}", name=name)
        texts = [each.text for each in found if each.rule == name]
        if texts:
            failure = ET.SubElement(case, "failure", message=printable_xml(f"{rule.demands} ({rule.reference})"))
            failure.text = printable_xml("\n".join(texts))
        elif name in passed_over:
            ET.SubElement(case, "skipped", message=printable_xml(skipped[name]))
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


def printable_xml(text: str) -> str:
    """Return a text without characters that XML forbids."""
    return "".join(each if each.isprintable() or each in "\n\t" else "?" for each in text)
