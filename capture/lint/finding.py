"""A violation as it is kept and shown: texts and numbers, without the frame."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pulsarium.capture.lint.checker import ALL_RULES
from pulsarium.capture.lint.frames import Conversation
from pulsarium.capture.lint.rule import Rule, Violation
from pulsarium.proto.text import printable

_LONGEST = 300
"""Characters of a text; the rest is some stranger's."""


@dataclass(frozen=True, slots=True)
class Finding:
    """rule: its name. side: `client` or `broker`, whose fault it is. frame: its number in its connection, from 0 on.
    at_ms: since the epoch. capture: the file it was found in, if it was one.
    """

    rule: str
    severity: str
    side: str
    detail: str
    client: str
    client_version: str
    connection: int
    frame: int
    command: str
    topic: str
    at_ms: int
    capture: str = ""

    def __str__(self) -> str:
        who = " ".join(filter(None, (self.client, self.client_version))) or "unknown client"
        where = f"connection {self.connection}, frame {self.frame}" + (f", {self.topic}" if self.topic else "")
        head = f"{self.capture}: " if self.capture else ""
        return f"{head}{self.side} {self.severity} {self.rule}: {self.detail} ({who}; {where})"

    def to_json(self) -> dict[str, Any]:
        """With what its rule says."""
        found = ALL_RULES[self.rule]
        return asdict(self) | {"demands": found.demands, "reference": found.reference, "mend": found.mend}

    @staticmethod
    def from_json(said: dict[str, Any]) -> Finding:
        """As `to_json` wrote it. KeyError: it is none."""
        return Finding(**{name: said[name] for name in Finding.__slots__})


def finding_of(violation: Violation, talk: Conversation, capture: str = "") -> Finding:
    frame = violation.frame
    return Finding(
        rule=violation.rule.name,
        severity=violation.rule.severity.value,
        side=violation.side.value,
        detail=_short(violation.detail),
        client=_short(talk.client),
        client_version=_short(talk.client_version),
        connection=frame.record.connection,
        frame=frame.number,
        command=frame.name,
        topic=_short(frame.topic or ""),
        at_ms=frame.record.wall_ns // 1_000_000,
        capture=capture,
    )


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """What there is to say of a rule."""
    return {
        "rule": rule.name,
        "severity": rule.severity.value,
        "about": rule.about.value,
        "demands": rule.demands,
        "reference": rule.reference,
        "mend": rule.mend,
    }


def _short(text: str) -> str:
    text = printable(text[: _LONGEST + 1])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
