"""Tests of what scenarios say about themselves."""

from __future__ import annotations

from pulsarium.conformance.scenarios import SCENARIOS

SCALABLE = [each for each in SCENARIOS.values() if each.topics == "scalable"]
CAPABILITIES = {"Transactions", "Namespace subscription"}
"""Optional capabilities of conformance.md, section 3, that have scenarios."""
SECTIONS = {
    "client API": "1 2 3.1 3.2 3.3 4 4.1 4.2 4.3 4.4 5 6 7",
    "client behavior": "1 2 3 4 5 6 7 8 9 10",
    "compatibility": "1 2 3 4 5",
    "conformance": "1 2 3 4",
    "data model": "1 2 3 4 5 6",
    "error model": "1 2 3 4 5",
    "key-shared": "2 3 4 5 7 8 9",
    "wire protocol": "1 2 3 4 5 6.1 6.2 6.3 7 8.1 8.2 9 10 11",
}
"""Sections of the specification's documents that bind clients, and do not only inform."""


def test_a_source_of_scalable_topics_is_a_section_that_binds_clients() -> None:
    sources = {each.name: each.source.rpartition(" ") for each in SCALABLE}
    assert {
        name: source for name, source in sources.items() if source[2] not in SECTIONS.get(source[0], "").split()
    } == {}


def test_a_requirement_of_scalable_topics_is_in_the_checklist_or_an_optional_capability() -> None:
    known = {f"C{number}" for number in range(1, 16)} | CAPABILITIES
    assert {each.name: each.requirement for each in SCALABLE if each.requirement not in known} == {}
