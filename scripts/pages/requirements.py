"""Generate docs/requirements.md: the legend of the codes that comments and tests cite."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2] / "tests"
ROWS = TESTS / "requirements.tsv"
KIT = TESTS / "conformance" / "test_clients.py"
CODE = r'"((?:S423|SREV|S415|S429|S54|W|P|C|B)-\d+)"'
FAMILIES = {
    "S423": "PIP-423: skip messages by id",
    "SREV": "The review of PIP-423",
    "S415": "PIP-415: find a message by its index",
    "S429": "The draft of PIP-429: protocol version 22 and the trailing entry buffer",
    "S54": "PIP-54: acknowledgement of single messages of a batch",
    "W": "The wire",
    "P": "Producers",
    "C": "Consumers",
    "B": "Behavior of the broker",
}


def requirements_page() -> str:
    """Return the text of docs/requirements.md."""
    return "\n".join(
        (
            "# Requirements",
            "",
            "Comments and tests cite requirements by these codes. A test carries its codes as `@pytest.mark.req(...)`;",
            "the suite fails when a code has no passed test. `transcript 055` is a recording of that number in",
            "`conformance/recordings/4.2.4/`.",
            'The column "official client" marks a row that a test proves with a client of somebody else, over TCP,',
            "or says why no such client can show the row.",
            "Generated from `tests/requirements.tsv`, the marks in `tests/foreign/` and the table of rows in",
            "`tests/conformance/test_clients.py`; do not edit.",
            *_sections(),
            "",
        )
    )


def _sections() -> Iterator[str]:
    proven = codes_of_official_clients()
    rows = [line.split("\t") for line in ROWS.read_text().splitlines() if line and not line.startswith("#")]
    without = reasons()
    for family, title in FAMILIES.items():
        yield from ("", f"## {title}", "", "| code | requirement | official client |", "|---|---|---|")
        for code, text, *_ in rows:
            if code.rpartition("-")[0] == family:
                yield f"| {code} | {_cell(text)} | {'yes' if code in proven else _cell(without.get(code, ''))} |"


def codes_of_official_clients() -> set[str]:
    """Return the codes that tests with clients of somebody else carry, in a mark or in a table of marks."""
    paths = [*(TESTS / "foreign").rglob("*.py"), KIT]
    return {code for path in paths for code in re.findall(CODE, path.read_text())}


def reasons() -> dict[str, str]:
    """Return why no client of somebody else can show a row: the third column of the table of rows."""
    rows = (line.split("\t") for line in ROWS.read_text().splitlines() if line and not line.startswith("#"))
    return {row[0]: row[2] for row in rows if len(row) > 2}


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
