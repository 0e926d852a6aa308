"""What Java's Avro 1.12.0 says of definitions and of each pair of them, recorded with the validators of Pulsar 4.2.4.

A line that was read has its text, how `toString(true)` writes it, and the numbers of those that it reads and equals;
one that was not, the exception.
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
