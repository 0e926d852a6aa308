"""Write the table of docs/proposals.md. The rest of the page is written by hand."""

from __future__ import annotations

import re
from pathlib import Path

from pulsarium.broker.config.keys import documented_keys
from pulsarium.broker.config.proposals import PROPOSALS, Proposal

PAGE = Path(__file__).parents[2] / "docs" / "proposals.md"
PIPS = "https://github.com/apache/pulsar/blob/master/pip/pip-{number}.md"


def proposals_page() -> str:
    """Return docs/proposals.md with the rows of today's proposals."""
    rows = "".join(map(_row, PROPOSALS.values()))
    return re.sub(r"(?<=\|---\|\n)(\|.*\n)+", lambda found: rows, PAGE.read_text(), count=1)


def _row(proposal: Proposal) -> str:
    own = (key.name for key in documented_keys().values() if key.meaning.proposal == proposal.number)
    keys = ", ".join(f"`{name}`" for name in own) or "none"
    fields = ", ".join(f"`{field}`" for field in proposal.draft_fields) or "none"
    link = f"[{proposal}]({PIPS.format(number=proposal.number)})"
    return f"| {link} | {proposal.title} | {proposal.status} | {proposal.does}. | {keys} | {fields} |\n"
