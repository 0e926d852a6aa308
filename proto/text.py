"""Handle text from outside: fields that are not UTF-8, unprintable characters, misspelled names."""

from __future__ import annotations

from collections.abc import Iterable


def text_of(value: str | bytes) -> str:
    """Return the text of a field. Bytes that are not UTF-8 become replacement characters, as in Pulsar."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def printable(text: str, keep: str = "") -> str:
    """Return the text with escapes (`\\x1b`) for unprintable characters, also line feeds, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else ascii(letter)[1:-1] for letter in text)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `did you mean NAME or NAME?` for similar names, or "" when there is none. Case is ignored."""
    import difflib  # imported only after a misspelling

    lower = {each.lower(): each for each in known}
    near = [lower[each] for each in difflib.get_close_matches(name.lower(), lower, n=2, cutoff=0.7)]
    return f"did you mean {' or '.join(near)}?" if near else ""
