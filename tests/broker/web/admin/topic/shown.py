"""Stats of topics as a real broker showed them, from the transcripts."""

from __future__ import annotations

import json
from typing import Any

from pulsarium.conformance.recordings.releases import PULSAR_4


def recorded(scenario: str, index: int = 0) -> Any:
    """Return the stats that a real broker answered in a transcript."""
    (path,) = PULSAR_4.folder.glob(f"{scenario}-*.jsonl")
    bodies = [json.loads(line) for line in path.read_text().splitlines() if '"rest"' in line]
    return [each["body"] for each in bodies if each["rest"].endswith("tats")][index]


def kinds(value: Any) -> Any:
    """Return the fields in their order with the types of their values, recursively."""
    if isinstance(value, dict):
        return [(key, kinds(each)) for key, each in value.items()]
    if isinstance(value, list):
        return [kinds(each) for each in value[:1]]
    return type(value).__name__
