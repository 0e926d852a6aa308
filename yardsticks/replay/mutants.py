"""Changes one field of one answer in a recording, as a broker that is wrong there would give it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from pulsarium.conformance.recordings.catalogue import Recorded
from pulsarium.conformance.recordings.replay import Replay

from . import report
from .expectations import Known

UNSEEN = frozenset(
    {
        "t",
        "raw",
        "raw_bytes",
        "crc32c",
        "server_version",
        "publish_time",
        "broker_timestamp",
        "highest_sequence_id",
        "request",
        "sent_at",
        "conn",
        "dir",
        "rest",
        "consumer_mark_delete_position_time",
        "message",
        "reason",
    }
)
"""Fields that compare.py masks, and those that name an answer."""


def unnoticed(replay: Replay, scenarios: Sequence[Recorded], known: Mapping[str, Known], count: int) -> list[str]:
    """Change `count` fields, one at a time, of what was recorded of `scenarios`; return the changes that passed.

    Only answers that must come are changed: an answer that a real broker does not repeat is not compared, and without
    one that is listed as lacking the scenario is as good.
    """
    rng, passed, changed = random.Random(19), [], 0
    while changed < count:
        scenario = rng.choice(scenarios)
        recording = replay.out / f"{scenario.name}.jsonl"
        original = recording.read_text()
        lines = original.splitlines(keepends=True)
        places = [
            (number, path) for number, line in enumerate(lines) if number for path in _fields_of(json.loads(line))
        ]
        if not places:
            continue
        number, path = rng.choice(places)
        answer = json.loads(lines[number])
        what = f"{scenario.name} line {number + 1}: {_change(answer, path)}"
        try:
            recording.write_text("".join(lines[:number] + lines[number + 1 :]))
            if report.good(replay.compare(scenario), known):
                continue  # the replay passes without this answer
            recording.write_text("".join([*lines[:number], json.dumps(answer) + "\n", *lines[number + 1 :]]))
            changed += 1
            if report.good(replay.compare(scenario), known):
                passed.append(what)
        finally:
            recording.write_text(original)
    return passed


def _change(answer: Any, path: tuple[str | int, ...]) -> str:
    """Give the field another value of its type, and return a description of the change."""
    holder = answer
    for step in path[:-1]:
        holder = holder[step]
    before = holder[path[-1]]
    holder[path[-1]] = _other(before)
    return f"{'.'.join(map(str, path))}: {before!r} is {holder[path[-1]]!r}"


def _fields_of(line: Any) -> list[tuple[str | int, ...]]:
    return _fields(line) if line.get("dir") == "b2c" or "rest" in line else []


def _fields(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of the values that the comparison looks at."""
    if isinstance(value, dict):
        return [place for key, part in value.items() if key not in UNSEEN for place in _fields(part, (*path, key))]
    if isinstance(value, list):
        return [place for index, part in enumerate(value) for place in _fields(part, (*path, index))]
    return [path] if _is_compared(value, str(path[-1]) if path else "") else []


def _is_compared(value: Any, key: str) -> bool:
    if isinstance(value, bool) or value is None:
        return value is not None
    if isinstance(value, int | float):  # ids of ledgers and times are masked
        return abs(value) < 10**12 and "ledger" not in key.lower() and "txnid" not in key.lower()
    return True


def _other(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else f"{value}x"
