"""Text of others: fields that are not UTF-8, characters that cannot be shown, misspelled names."""

from __future__ import annotations

from collections.abc import Iterable


def text_of(value: str | bytes) -> str:
    """The text of a field; what is not UTF-8 is replaced, as Pulsar does."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def printable(text: str) -> str:
    """The text on one line, with escapes (`\\x1b`) for what a terminal would obey or nobody can see."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `did you mean NAME or NAME?` for the names that look alike, "" if none does. Case does not count."""
    import difflib  # wanted only where somebody misspelled something

    lower = {each.lower(): each for each in known}
    near = [lower[each] for each in difflib.get_close_matches(name.lower(), lower, n=2, cutoff=0.7)]
    return f"did you mean {' or '.join(near)}?" if near else ""
