"""Compares an answer with the recorded one, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .recording import Answer, Call

TIMES = range(1_600_000_000_000, 16_000_000_000_000)
"""Times in milliseconds since the epoch, which differ in each run. 0 means no time, and is compared."""

INSTANT = re.compile(r"(?!1970)\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:?\d\d)?")
ADDRESS = re.compile(r"(127\.0\.0\.1|localhost):\d+")
GENERATED = re.compile(r"standalone-\d+-\d+")
CONSUMER = re.compile(r"[0-9a-f]{10}")
"""The name that a client generates for a consumer."""

PLACE = re.compile(r"\b(\d+):(-?\d+)\b")
COLUMN = re.compile(r"column: \d+")
"""The column of a body where its parser stopped."""

LEDGERS = frozenset({"ledgerId", "lastOffloadLedgerId", "CompactedTopicLedger"})
CURSOR_LEDGERS = frozenset({"cursorLedger", "cursorsLedgerId", "cursorLedgerId"})
REASON = "reason"


def differences(call: Call, answer: Answer) -> list[str]:
    """Name each field of `answer` that is not as recorded, with both values: `subscriptions.s.n: 1, Pulsar 2`."""
    golden = call.golden
    if answer.status == 0:
        return [str(answer.body)]
    if answer.status != golden.status:
        return [f"status {answer.status}{_shown(answer)}, Pulsar {golden.status}"]
    if not call.body_counts:
        return []
    if (said := _kind(answer)) != (wanted := _kind(golden)):
        return [f"{said}{_shown(answer)}, Pulsar {wanted}"]
    headers = _apart(_Masked()(dict(golden.kept)), _Masked()(dict(answer.kept)), "header")
    types = _apart(golden.content_type, answer.content_type, "Content-Type")
    return [*headers, *types, *_apart(_said(call, golden), _said(call, answer), "")]


def _kind(answer: Answer) -> str:
    return "text" if answer.plain else "nothing" if answer.body == "" else "JSON"


def _shown(answer: Answer) -> str:
    """Return a masked JSON body as text, after a blank. Return "" for other bodies."""
    return f" {_Masked()(answer.body)!r}" if _kind(answer) == "JSON" else ""


def _said(call: Call, answer: Answer) -> Any:
    """Return the body without the values that differ in each run."""
    body = answer.body
    if isinstance(body, dict) and REASON in body and not call.text_counts:
        body = {**body, REASON: ""}
    return _Masked()(body)


class _Masked:
    """Puts TIME, ADDR, GEN and L0, L1, ... in the place of values that belong to one run.

    Ledgers are numbered by their first appearance in the answer, those of cursors apart from those of topics.
    """

    def __init__(self) -> None:
        self._ledgers: dict[int, str] = {}
        self._cursor_ledgers: dict[int, str] = {}

    def __call__(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {self._text(name): self(value[name], name) for name in sorted(value)}
        if isinstance(value, list):
            parts = [self(part, key) for part in value]
            return sorted(parts) if all(isinstance(part, str) for part in parts) else parts
        if isinstance(value, str):
            return "GEN" if key == "consumerName" and CONSUMER.fullmatch(value) else self._text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return self._number(value, key)
        return value

    def _number(self, value: int, key: str) -> int | str:
        if value in TIMES:
            return "TIME"
        if value >= 0 and key in LEDGERS:
            return self._ledger(value)
        if value >= 0 and key in CURSOR_LEDGERS:
            return self._cursor_ledgers.setdefault(value, f"C{len(self._cursor_ledgers)}")
        return value

    def _text(self, text: str) -> str:
        text = GENERATED.sub("GEN", ADDRESS.sub("ADDR", INSTANT.sub("TIME", text)))
        return COLUMN.sub("column: ...", PLACE.sub(lambda found: f"{self._ledger(int(found[1]))}:{found[2]}", text))

    def _ledger(self, number: int) -> str:
        return self._ledgers.setdefault(number, f"L{len(self._ledgers)}")


def _apart(golden: Any, other: Any, where: str) -> Iterator[str]:
    """Name each place where two values differ, in words."""
    if isinstance(golden, dict) and isinstance(other, dict):
        if lacking := sorted(golden.keys() - other.keys()):
            yield f"{where}: lacks {', '.join(lacking)}"
        if extra := sorted(other.keys() - golden.keys()):
            yield f"{where}: has {', '.join(extra)}, which Pulsar's has not"
        for name in golden.keys() & other.keys():
            yield from _apart(golden[name], other[name], f"{where}.{name}" if where else name)
    elif isinstance(golden, list) and isinstance(other, list) and len(golden) == len(other):
        for index, (one, another) in enumerate(zip(golden, other, strict=True)):
            yield from _apart(one, another, f"{where}[{index}]")
    elif golden != other or isinstance(golden, bool) is not isinstance(other, bool):
        yield f"{where}: {other!r}, Pulsar {golden!r}"
