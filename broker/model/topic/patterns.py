"""Match topic names with the patterns of clients, by topicsPatternRegexImplementation of broker.conf.

RE2 and `java_regex` take bounded time, whatever a client sends. What neither evaluates is left to the client.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from functools import lru_cache
from typing import Final

from pulsarium.broker.model.topic.java_regex import RegexWork, full_match
from pulsarium.broker.model.topic.java_syntax import PatternSyntaxError, parse
from pulsarium.proto.topic_name import TopicName

Expression = Callable[[str, RegexWork], bool]

RE2J: Final = "RE2J"
JDK: Final = "JDK"
MOST_WORK: Final = 100_000
"""Work of one request of a client, which takes about a tenth of a second, in slices."""

MOST_WORK_OF_A_NAME: Final = 10_000
"""Work for one of the names, which nothing can interrupt."""

_SEPARATOR = "://"
_DOMAINS = ("non-persistent", "persistent")
_RE2J_TEXTS: Mapping[str, str] = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "unexpected )": "regexp/syntax: internal error",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}


class PatternError(ValueError):
    """A pattern that Pulsar refuses, with the text of the exception in Java.

    java: the exception's class.
    """

    def __init__(self, java: str, text: str) -> None:
        super().__init__(text)
        self.java = java


class WrongDomain(PatternError):
    """A pattern that begins with neither persistent:// nor non-persistent://."""


def expression(text: str, implementation: str) -> Expression:
    """Return a regular expression over whole texts.

    Raise `PatternError` when Pulsar refuses it, and `NotEvaluable` when it cannot be evaluated here.
    """
    if implementation != JDK:
        try:
            return _re2(text)
        except PatternError:
            if implementation == RE2J:
                raise
    try:
        node = parse(text)
    except PatternSyntaxError as error:
        raise PatternError("java.util.regex.PatternSyntaxException", str(error)) from None
    return lambda name, work: full_match(node, name, work)


def _re2(text: str) -> Expression:
    import re2

    options = re2.Options()
    options.log_errors = False  # else each invalid expression leaves a line on stderr
    try:
        compiled = re2.compile(text, options)
    except re2.error as error:
        raise PatternError("com.google.re2j.PatternSyntaxException", _re2j_text(error.args[0].decode())) from None
    return lambda name, work: compiled.fullmatch(name) is not None


def _re2j_text(error: str) -> str:
    kind, mark, what = error.partition(": ")
    if not mark:
        return "error parsing regexp: trailing backslash at end of expression"
    if kind == "unexpected )":
        what = "stack underflow"
    return f"error parsing regexp: {_RE2J_TEXTS.get(kind, kind)}: `{what}`"


@lru_cache(maxsize=1 << 16)
def _matched(name: str) -> str:
    """Return the part of a topic's name that patterns match: without domain and partition."""
    return str(TopicName.parse(name).partitioned_name).partition(_SEPARATOR)[2]


class TopicPattern:
    """A regular expression over topic names without domain and partition, as Pulsar matches them."""

    def __init__(self, text: str, implementation: str) -> None:
        """Parse the pattern. Raise `PatternError` when Pulsar refuses it, or `NotEvaluable`."""
        self._expression = expression(without_domain(text), implementation)

    def matches(self, name: str, work: RegexWork) -> bool:
        """Return whether a topic matches. Raise `NotEvaluable` when that takes too much work."""
        return self._expression(_matched(name), work)

    def select(self, names: Iterable[str]) -> Generator[None, None, list[str]]:
        """Return the topics that match, with a step for each name.

        Raise `NotEvaluable` when that takes too much work.
        """
        left, found = MOST_WORK, list[str]()
        for name in names:
            most = min(left, MOST_WORK_OF_A_NAME)
            work = RegexWork(most)
            if self.matches(name, work):
                found.append(name)
            left -= most - work.left
            yield
        return found


def without_domain(pattern: str) -> str:
    """Return a pattern without the domain of its topics. Raise `WrongDomain` for another domain."""
    before, mark, behind = pattern.partition(_SEPARATOR)
    if not mark:
        return pattern
    for domain in _DOMAINS:
        if before.endswith(domain):
            return before.removesuffix(domain) + behind.partition(_SEPARATOR)[0]
    raise WrongDomain("java.lang.IllegalArgumentException", f"Does not support topic domain: {before}")
