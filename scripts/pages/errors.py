"""Generate docs/errors.md: the errors of the protocol, and texts of logs and commands as the code has them."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.cli.known_errors import NEXT, SECTIONS, Text, cases, meaning, text_of


def errors_page() -> str:
    """Return docs/errors.md."""
    return "\n".join(
        (
            "# Errors",
            "",
            "What an error means, and what to do next. Search for the name that a client's log shows, or for a part",
            "of the text; `...` stands for a name or a number. Without this page, `pulsarium explain` has the same:",
            "",
            "```bash",
            "pulsarium explain ProducerBusy",
            "```",
            "",
            "Generated from the code and `cli/known_errors.py`; do not edit.",
            *(line for section, rows in SECTIONS.items() for line in ("", f"## {section}", *_texts_of(rows))),
            "",
            "## Errors that the broker answers",
            "",
            "Each has the name of a ServerError of Pulsar's protocol. Clients of other languages show the name, or a",
            "class with a similar one. [The client](client.md#errors) lists the classes of Pulsarium's own.",
            *(line for name in NEXT for line in _answer(name)),
            "",
        )
    )


def _texts_of(rows: tuple[Text, ...]) -> Iterator[str]:
    for row in rows:
        yield from ("", f"### {row.name}", "", f"`{text_of(row)}`", "")
        yield f"Cause: {row.cause}.<br>Next: {row.remedy}."


def _answer(name: str) -> Iterator[str]:
    yield from ("", f"### {name}", "", meaning(name))
    if reasons := cases(name):
        yield from ("", "The broker answers so in these cases:", "")
        yield from (f"- {each}" for each in reasons)
    yield from ("", NEXT[name])
