"""Output of foreign programs, made comparable: names replace the values that differ from run to run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

PATTERNS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"(localhost|127\.0\.0\.1|\[::1\]):\d{4,5}\b"), "BROKER"),
    # The number of a ledger depends on all ledgers that the broker created before.
    (re.compile(r"(?<![\d:.-])\d+:(?=-?\d+(\D|$))"), "LEDGER:"),
    (re.compile(r"(?<![\d.])1\d{12}(?![\d.])"), "MILLISECONDS"),
    (re.compile(r"\[(consume|produce), (consume|produce)\]"), "[consume, produce]"),
    (re.compile(r"\b(standalone)-\d+-\d+\b"), r"\1-NAME"),
    (re.compile(r"ServletContainer(-[0-9a-f]+)?"), "ServletContainer-ID"),
)

VOLATILE = re.compile(
    r"""
    \w*Rate\w* | \w*Throughput\w* | \w*[Tt]ime\w* | \w*Since | \w*Delay\w* | \w*Duration\w* | \w*Size | \w*[Bb]ytes\w*
    | \w*LedgerId | ledgerId | \w*Position | cursorLedger | \w*LedgerLastEntry | bundle | \w*InMillis | \w*AgeSeconds
    | numberOfEntriesSinceFirstNotAckedMessage | \w*Throttled\w* | address | clientVersion | producerName | producerId
    | metadata | underReplicated | version | state
    """,
    re.VERBOSE,
)
"""Fields of statistics whose values differ from run to run. Only their presence and their types are compared."""


def comparable(value: Any, statistics: bool = False) -> Any:
    """Replace values that differ from run to run by names, and measured fields of `statistics` by their types."""
    if isinstance(value, dict):
        return {
            without_chance(key): _kind(item) if statistics and _measures(key, item) else comparable(item, statistics)
            for key, item in value.items()
        }
    if isinstance(value, list):
        items = [comparable(item, statistics) for item in value]
        return sorted(items) if all(isinstance(item, str) for item in items) else items
    return without_chance(value) if isinstance(value, str) else value


def without_chance(text: str) -> str:
    for pattern, name in PATTERNS:
        text = pattern.sub(name, text)
    return text


def parsed(text: str) -> Any:
    """Return the value of a JSON text, or the text itself when it is not JSON."""
    try:
        return json.loads(text) if text[:1] in ("{", "[") else text
    except ValueError:
        return text


def differences(wanted: Any, got: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each place where two comparable values differ."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key in wanted | got:
            if key in wanted and key in got:
                yield from differences(wanted[key], got[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}: {'only there' if key in wanted else 'only here'}"
    elif isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        for index, (one, other) in enumerate(zip(wanted, got, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif wanted != got or type(wanted) is not type(got):
        yield f"{path}: {wanted!r} there, {got!r} here"


def _measures(key: str, value: Any) -> bool:
    return not isinstance(value, (dict, list)) and VOLATILE.fullmatch(key) is not None


def _kind(value: Any) -> Any:
    kinds = {bool: "FLAG", int: "NUMBER", float: "NUMBER", str: "TEXT"}
    return kinds.get(type(value))
