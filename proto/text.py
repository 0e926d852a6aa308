"""Text of others: fields that are not UTF-8, which protobuf hands over as bytes; characters that cannot be shown."""

from __future__ import annotations


def text_of(value: str | bytes) -> str:
    """The text of a field; what is not UTF-8 is replaced, as Pulsar does."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def printable(text: str) -> str:
    """The text on one line, with escapes (`\\x1b`) for what a terminal would obey or nobody can see."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
