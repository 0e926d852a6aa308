"""Patterns of topic names (B-38)."""

from __future__ import annotations

from pulsarium.proto.topic_name import TopicName


class PatternError(ValueError):
    """Not a regular expression."""


class TopicPattern:
    """A regular expression over topic names without scheme and partition, as Pulsar matches them.

    RE2, which Pulsar uses too: its time is linear whatever a client sends.
    """

    def __init__(self, text: str) -> None:
        import re2

        options = re2.Options()
        options.log_errors = False  # or each one that is none leaves a line on stderr
        try:
            self._expression = re2.compile(text.rpartition("://")[2], options)
        except re2.error as error:
            raise PatternError(f"java.util.regex.PatternSyntaxException: {error}") from None

    def matches(self, name: str) -> bool:
        whole = str(TopicName.parse(name).partitioned_name)
        return self._expression.fullmatch(whole.partition("://")[2]) is not None
