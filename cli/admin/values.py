"""Parse values of the command line as pulsar-admin does: names, durations, sizes, message ids and lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from pulsarium.cli.completing import topics
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.numbers import LONG_MAX
from pulsarium.proto.topic_name import NamespaceName, TopicName
from pulsarium.rest.message_ids import EARLIEST, LATEST, PlainId

_LONG = re.compile(r"[+-]?[0-9]+")
TIME_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
_SIZE_UNITS: Final = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


class Parsed(click.ParamType[Any]):
    """A parameter type from a function that raises ValueError for a wrong text."""

    def __init__(self, name: str, parse: Callable[[str], object], complete: Complete | None = None) -> None:
        self.name = name
        self._parse = parse
        self._complete = complete

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [] if self._complete is None else self._complete(ctx, param, incomplete)


def pattern(name: str, text: str) -> re.Pattern[str]:
    """Return a compiled regular expression. Raise click.UsageError, with the option's name, for a wrong one."""
    try:
        return re.compile(text)
    except re.error as error:
        raise click.UsageError(f"{name}: '{text}' is no regular expression: {error}") from None


def _long(text: str) -> int:
    if not _LONG.fullmatch(text) or not -LONG_MAX - 1 <= int(text) <= LONG_MAX:
        raise ValueError(f"'{text}' is not a whole number")
    return int(text)


def _int(text: str) -> int:
    number = _long(text)
    if not -(2**31) <= number < 2**31:
        raise ValueError(f"'{text}' is not a whole number of 32 bits")
    return number


def _seconds(text: str) -> int:
    unit = text[-1:].lower()
    if not unit.isalpha():
        return _long(text)
    if unit not in TIME_UNITS:
        raise ValueError(f"'{text}' has no unit of time; write 10s, 5m, 3h, 2d, 5w or 1y, or a plain number of seconds")
    return _long(text[:-1]) * TIME_UNITS[unit]


def _bytes(text: str) -> int:
    factor = _SIZE_UNITS.get(text[-1:].lower())
    try:
        return _long(text) if factor is None else _long(text[:-1]) * factor
    except ValueError:
        raise ValueError(f"'{text}' is no size; write 4096, 100K, 10M, 16G or 2T") from None


def _int_seconds(text: str) -> int:
    seconds = _seconds(text)
    if seconds >= 2**31:
        raise ValueError(f"'{text}' is longer than 68 years, the maximum")
    return seconds


def _position(text: str) -> PlainId:
    ledger, colon, entry = text.partition(":")
    if not colon:
        raise ValueError(f"'{text}' is no message id; write ledgerId:entryId")
    return PlainId(_long(ledger), _long(entry))


def _cursor_position(text: str) -> PlainId:
    return {"latest": LATEST, "earliest": EARLIEST}.get(text) or _position(text)


def _timestamp(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError(
            f"'{text}' is no time with an offset; write 2021-06-28T16:53:08Z or 2021-06-28T16:53:08.123+02:00"
        )
    return round(moment.timestamp() * 1000)


def _topic(text: str) -> TopicName:
    try:
        return TopicName.parse(text)
    except InvalidTopicName as error:
        raise ValueError(str(error)) from None


def _namespace(text: str) -> NamespaceName:
    try:
        return NamespaceName.parse(text)
    except InvalidTopicName as error:
        raise ValueError(str(error)) from None


INT = Parsed("integer", _int)
LONG = Parsed("integer", _long)
SECONDS = Parsed("duration", _seconds)
INT_SECONDS = Parsed("duration", _int_seconds)
MILLISECONDS = Parsed("duration", lambda text: _seconds(text) * 1000)
BYTES = Parsed("size", _bytes)
POSITION = Parsed("L:E", _position)
CURSOR_POSITION = Parsed("L:E", _cursor_position)
TIMESTAMP = Parsed("time", _timestamp)
TOPIC = Parsed("topic", _topic, topics)
NAMESPACE = Parsed("tenant/namespace", _namespace)


def split(texts: Iterable[str] | str | None) -> list[str]:
    """Return the words of comma-separated and repeated options as one list, without empty words."""
    words = [texts] if isinstance(texts, str) else texts or ()
    return [word.strip() for text in words for word in text.split(",") if word.strip()]


def key_values(texts: Iterable[str]) -> dict[str, str]:
    """Return `key=value` options as a mapping. Raise click.UsageError for an option without `=`."""
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"Invalid key value pair '{text}', valid format like 'a=b'.")
        pairs[key.strip()] = value.strip()
    return pairs
