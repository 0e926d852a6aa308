"""Errors for JSON that Jackson does not read, with its texts."""

from __future__ import annotations


def place(line: int, column: int | None) -> str:
    """Return the place of an error in Jackson's words."""
    return f"\n at {source(line, column)}"


def source(line: int, column: int | None) -> str:
    at = f"line: {line}" if column is None else f"line: {line}, column: {column}"
    return f"[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); {at}]"


class JsonError(ValueError):
    """Error for JSON that Jackson does not read. `str` is Jackson's text, and `java_class` its exception's class."""

    java_class = "com.fasterxml.jackson.databind.exc.MismatchedInputException"

    def __init__(self, text: str, *chain: str) -> None:
        super().__init__(text)
        self._text = text
        self._chain = chain

    def __str__(self) -> str:
        return self._text + (f" (through reference chain: {'->'.join(self._chain)})" if self._chain else "")

    def inside(self, outer: str) -> JsonError:
        """Return the error of the value that contains the wrong one."""
        return JsonError(self._text, outer, *self._chain)


class JsonParseError(JsonError):
    """Error for a text that is no JSON."""

    java_class = "com.fasterxml.jackson.core.JsonParseException"


class JsonEndError(JsonParseError):
    """Error for a text that ends inside a value."""

    java_class = "com.fasterxml.jackson.core.io.JsonEOFException"


class NoContent(JsonError):
    """Error for a text without a value."""


class OutOfRange(JsonError):
    """Error for a number that does not fit its type, or for a limit of the parser. REST fails with 500."""
