"""Print transcripts compactly: python -P -m pulsarium.conformance.recordings.show [--width N] FILE..."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def shown(line: dict[str, Any], width: int) -> str:
    """Return a line of a transcript, the times of publishing and what goes without saying left out."""
    at, connection = f"{line.pop('t'):6d}", f"{line.pop('conn', ''):6s}"
    line.pop("raw_bytes", None)
    raw = line.pop("raw", "")
    if "step" in line:
        return f"{at}    # {line['step']}"
    if "rest" in line:
        request = json.dumps(line["request"]) if "request" in line else ""
        return f"{at}    REST {line['rest']} {request} -> {line['status']} {json.dumps(line['body'])[:700]}"
    if "dir" not in line:
        return f"{at} {connection} {json.dumps(line)}"[:300]
    arrow = ">" if line.pop("dir") == "c2b" else "   <"
    type_, command = line.pop("type", ""), line.pop("cmd", None)
    if isinstance(line.get("metadata"), dict):
        line["metadata"].pop("publish_time", None)
    if line.get("crc32c") == "ok":
        del line["crc32c"]
    content = raw[:80] if command is None else json.dumps(command)
    return f"{at} {connection}{arrow} {type_} {content} {json.dumps(line) if line else ''}"[:width]


def main() -> None:
    parser = argparse.ArgumentParser(description="Print transcripts compactly.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--width", type=int, default=430)
    options = parser.parse_args()
    for path in options.files:
        head, *lines = map(json.loads, path.read_text().splitlines())
        print("=" * 8, head["scenario"], "|", head["purpose"])
        for line in lines:
            print(shown(line, options.width))


if __name__ == "__main__":
    main()
