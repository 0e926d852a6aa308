"""Helpers for the tests of capture."""

from __future__ import annotations

from collections.abc import Iterable

from pulsarium.capture.file import Record
from pulsarium.capture.lint.checker import Walk


def told(records: Iterable[Record]) -> list[str]:
    """Each as `client SEND`, `broker closed: why`."""
    walk = Walk()
    found = []
    for record in records:
        _, seen = walk.feed(record)
        what = seen.frame.name if seen.frame else record.kind.name.lower()
        reason = f": {record.note['reason']}" if "reason" in record.note else ""
        found.append(f"{record.sender.value} {what}{reason}")
    return found


def violations(records: Iterable[Record]) -> list[str]:
    """Of the rules of the protocol."""
    walk = Walk(judging=True)
    return [f"{each.rule.name}: {each.detail}" for record in records for each in walk.feed(record)[1].violations]
