"""Helpers for the tests of capture."""

from __future__ import annotations

from collections.abc import Iterable

from pulsarium.capture.file import CaptureRecord
from pulsarium.capture.lint.checker import Walk


def told(records: Iterable[CaptureRecord]) -> list[str]:
    """Return the sender and the command of each record, such as `client SEND`, or its kind, such as `broker closed:
    why`."""
    walk = Walk()
    found = []
    for record in records:
        _, seen = walk.feed(record)
        what = seen.frame.name if seen.frame else record.kind.name.lower()
        reason = f": {record.note['reason']}" if "reason" in record.note else ""
        found.append(f"{record.sender.value} {what}{reason}")
    return found


def violations(records: Iterable[CaptureRecord]) -> list[str]:
    """Return the rules of the protocol that the records violate, each with its detail."""
    walk = Walk(judging=True)
    return [f"{each.rule.name}: {each.detail}" for record in records for each in walk.feed(record)[1].violations]
