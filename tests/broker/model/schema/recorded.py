"""Recorded answers of Java's Avro 1.12.0 for definitions and pairs of them, with the validators of Pulsar 4.2.4.

A definition that Java read has its text, its form by `toString(true)`, and the numbers of the definitions that it
can read and that it equals. A definition that Java refused has the exception.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_LINES: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "avro.jsonl").read_text(encoding="utf-8").splitlines()
]
READ = [line for line in _LINES if "error" not in line]
REFUSED = [line for line in _LINES if "error" in line]
