"""Explain facts: all findings about each subscription, the one that is stuck most first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pulsarium.rest.why.facts import Facts
from pulsarium.rest.why.reasons import LAST_RESORT, REASONS, Finding, WhyReason
from pulsarium.rest.why.state import State

CAUGHT_UP = "caught-up"
DELIVERING = "delivering"


@dataclass(frozen=True)
class Explained:
    """An answer about one subscription: its findings, the most important first, or none where nothing is wrong."""

    facts: Facts
    findings: tuple[Finding, ...]

    @cached_property
    def state(self) -> State:
        """Return the state of the subscription."""
        return State(self.facts)

    @property
    def backlog(self) -> int:
        """Return the entries that are not acknowledged."""
        return self.state.backlog

    @property
    def unacked(self) -> int:
        """Return what consumers have and did not acknowledge."""
        return self.state.unacked

    @property
    def reason(self) -> str:
        """Return the first reason, or `caught-up` or `delivering` without findings."""
        if self.findings:
            return self.findings[0].reason
        return DELIVERING if self.backlog else CAUGHT_UP

    @property
    def text(self) -> str:
        """Return the answer as a sentence."""
        if self.findings:
            return self.findings[0].text
        if not self.backlog:
            return _nothing_left(self.state)
        quiet = self.state.quiet_ms
        since = "" if quiet is None or quiet > 86_400_000 else f": it moved {max(0, quiet) / 1000:.0f} s ago"
        return f"no counter says that the subscription is stuck{since}"


def explain(facts: Facts, reasons: Mapping[str, WhyReason] = REASONS) -> Explained:
    """Return what the facts say about one subscription."""
    state, found = State(facts), list[Finding]()
    for name, each in reasons.items():
        finding = None if found and name == LAST_RESORT else each.find(state)
        if finding is not None:
            found.append(replace(finding, reason=name, advice=each.advice))
    return Explained(facts, tuple(found))


def ranked(answers: Iterable[Explained]) -> list[Explained]:
    """Return the answers with findings first, and among them those with the largest backlog."""
    return sorted(answers, key=lambda each: (not each.findings, -each.backlog, each.facts.topic))


def as_json(answers: list[Explained]) -> dict[str, Any]:
    """Return ranked answers as JSON, in the form of `GET /lab/why`: `reason`, `text` and `details`."""
    first = answers[0]
    details = {
        "topic": first.facts.topic,
        "subscription": first.facts.subscription,
        "backlog": first.backlog,
        "findings": [each.as_json() for each in first.findings],
    }
    if len(answers) > 1:
        details["subscriptions"] = [_row(each) for each in answers]
    return {"reason": first.reason, "text": first.text, "details": details}


def _row(answer: Explained) -> dict[str, Any]:
    return {
        "topic": answer.facts.topic,
        "subscription": answer.facts.subscription,
        "backlog": answer.backlog,
        "unacked": answer.unacked,
        "reason": answer.reason,
        "text": answer.text,
        "findings": [each.as_json() for each in answer.findings],
    }


def _nothing_left(state: State) -> str:
    if not state.facts.subscription:
        return "the topic has no subscription"
    text = "everything was acknowledged"
    if expired := state.count("totalMsgExpired"):
        text += f"; {expired} messages expired without a consumer"
    if not state.consumers:
        text += "; no consumer is connected"
    return text if state.topic.get("publishers") else f"{text}; no producer is connected"
