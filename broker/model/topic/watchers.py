"""Report created and deleted topics to clients (PIP-145), by patterns of topic names (B-38)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import crc32c

from pulsarium.proto.topic_name import TopicName, is_system_topic


class PatternError(ValueError):
    """An invalid regular expression."""


class TopicPattern:
    """A regular expression over topic names without scheme and partition, as Pulsar matches them.

    It uses RE2, as Pulsar does: matching takes linear time, whatever a client sends.
    """

    def __init__(self, text: str) -> None:
        import re2

        options = re2.Options()
        options.log_errors = False  # else each invalid expression leaves a line on stderr
        try:
            self._expression = re2.compile(text.rpartition("://")[2], options)
        except re2.error as error:
            raise PatternError(f"java.util.regex.PatternSyntaxException: {error}") from None

    def matches(self, name: str) -> bool:
        whole = str(TopicName.parse(name).partitioned_name)
        return self._expression.fullmatch(whole.partition("://")[2]) is not None


Tell = Callable[[list[str], list[str], str], None]  # new topics, deleted topics, and the hash of all that match now


def hash_of_names(names: Iterable[str]) -> str:
    """Return the CRC32C of the sorted names in hexadecimal, lowest byte first (cmd 33)."""
    return int(crc32c.crc32c(",".join(sorted(names)).encode())).to_bytes(4, "little").hex()


class TopicListWatcher:
    """The persistent topics of a namespace that match a pattern. Calls `tell` when they change."""

    def __init__(self, namespace: str, pattern: TopicPattern, names: Iterable[str], tell: Tell) -> None:
        self.names = {name for name in names if pattern.matches(name)}
        self._prefix = f"persistent://{namespace}/"
        self._pattern = pattern
        self._tell = tell

    @property
    def hash(self) -> str:
        return hash_of_names(self.names)

    def _concerns(self, name: str) -> bool:
        return name.startswith(self._prefix) and self._pattern.matches(name)

    def created(self, name: str) -> None:
        if self._concerns(name) and name not in self.names:
            self.names.add(name)
            self._tell([name], [], self.hash)

    def deleted(self, name: str) -> None:
        if name in self.names:
            self.names.discard(name)
            self._tell([], [name], self.hash)


class Watchers:
    """The topic list watchers of a broker."""

    def __init__(self) -> None:
        self._watchers: dict[TopicListWatcher, None] = {}

    def add(self, watcher: TopicListWatcher) -> None:
        self._watchers[watcher] = None

    def remove(self, watcher: TopicListWatcher) -> None:
        self._watchers.pop(watcher, None)

    def created(self, name: str) -> None:
        if self._watchers and not is_system_topic(TopicName.parse(name)):
            for watcher in self._watchers:
                watcher.created(name)

    def deleted(self, name: str) -> None:
        for watcher in self._watchers:
            watcher.deleted(name)
