"""Keep the lists of persistent topics, and report created and deleted topics to clients (PIP-145)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from typing import Final

import crc32c

from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.topic.java_regex import NotEvaluable, RegexWork
from pulsarium.broker.model.topic.patterns import MOST_WORK_OF_A_NAME, TopicPattern
from pulsarium.proto.special_names import has_system_name
from pulsarium.proto.topic_name import PERSISTENT, TopicName

log = PartLog("watchers")

Tell = Callable[[list[str], list[str], str], None]  # new topics, deleted topics, and the hash of all that match now

MOST_KEPT: Final = 16  # patterns of a namespace that no client watches


def hash_of_names(names: Iterable[str]) -> str:
    """Return the CRC32C of the sorted names in hexadecimal, lowest byte first."""
    return int(crc32c.crc32c(",".join(sorted(names)).encode())).to_bytes(4, "little").hex()


class SortedNames(Collection[str]):
    """Topic names in order, with their hash."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = sorted(names)
        self._hash: str | None = None  # None: unknown since the last change

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._names[(at := bisect_left(self._names, name)) : at + 1]

    @property
    def hash(self) -> str:
        if self._hash is None:
            self._hash = hash_of_names(self._names)
        return self._hash

    def add(self, name: str) -> bool:
        """Add a name, and return whether it is new."""
        if name in self:
            return False
        self._names.insert(bisect_left(self._names, name), name)
        self._hash = None
        return True

    def discard(self, name: str) -> bool:
        """Remove a name, and return whether it was there."""
        if name not in self:
            return False
        del self._names[bisect_left(self._names, name)]
        self._hash = None
        return True


class MatchingTopics:
    """The topics of a namespace that match a pattern. All clients that ask for both share them."""

    def __init__(self, pattern: TopicPattern, names: Iterable[str]) -> None:
        self.names = SortedNames(names)
        self.watchers: dict[TopicListWatcher, None] = {}
        self._pattern = pattern

    def _concerns(self, name: str) -> bool:
        try:
            return self._pattern.matches(name, RegexWork(MOST_WORK_OF_A_NAME))
        except NotEvaluable:
            log.warning("a watcher is not told of a topic: its pattern takes too much work", topic=name)
            return False

    def created(self, name: str) -> None:
        if self._concerns(name) and self.names.add(name):
            self._tell([name], [])

    def deleted(self, name: str) -> None:
        if self.names.discard(name):
            self._tell([], [name])

    def _tell(self, new: list[str], deleted: list[str]) -> None:
        for watcher in self.watchers:
            watcher.tell(new, deleted, self.names.hash)


class Listing:
    """The persistent topics of a namespace. A topic that comes or goes changes the lists, which are not made again."""

    def __init__(self) -> None:
        self.names = SortedNames()
        self._visible: SortedNames | None = None  # None until a client asks
        self._matching: dict[str, MatchingTopics] = {}  # by pattern; of those without watchers, the latest come last

    @property
    def visible(self) -> SortedNames:
        """Return the topics that clients find: all but system topics."""
        if self._visible is None:
            self._visible = SortedNames(name for name in self.names if not has_system_name(TopicName.parse(name)))
        return self._visible

    @property
    def is_needed(self) -> bool:
        return bool(self.names) or any(matching.watchers for matching in self._matching.values())

    def created(self, name: TopicName) -> None:
        text = str(name)
        self.names.add(text)
        if self._visible is not None and not has_system_name(name):
            self._visible.add(text)
            for matching in self._matching.values():
                matching.created(text)

    def deleted(self, name: str) -> None:
        self.names.discard(name)
        if self._visible is not None and self._visible.discard(name):
            for matching in self._matching.values():
                matching.deleted(name)

    def select(self, pattern: str, implementation: str) -> Generator[None, None, MatchingTopics]:
        """Return the topics that match a pattern, with a step for each topic if they are not known.

        Raise `PatternError` when Pulsar refuses the pattern, and `NotEvaluable` when it takes too much work.
        """
        known = self._matching.pop(pattern, None)
        if known is None:
            compiled, seen, found = TopicPattern(pattern, implementation), set[str](), list[str]()
            while fresh := [name for name in self.visible if name not in seen]:  # more may come between the steps
                seen.update(fresh)
                found += yield from compiled.select(fresh)
            known = self._matching.pop(pattern, None) or MatchingTopics(
                compiled, (name for name in found if name in self.visible)
            )
        self._matching[pattern] = known
        self._forget_old()
        return known

    def _forget_old(self) -> None:
        unwatched = [pattern for pattern, matching in self._matching.items() if not matching.watchers]
        for pattern in unwatched[:-MOST_KEPT]:
            del self._matching[pattern]


class TopicListWatcher:
    """A client that `tell` informs of new and deleted topics of a namespace."""

    def __init__(self, namespace: str, matching: MatchingTopics, tell: Tell) -> None:
        self.namespace = namespace
        self.matching = matching
        self.tell = tell


class Watchers:
    """The lists of persistent topics by namespace, and the clients that watch them."""

    def __init__(self) -> None:
        self._listings: dict[str, Listing] = {}

    def listing(self, namespace: str) -> Listing:
        """Return the topics of a namespace, which need not exist."""
        return self._listings.get(namespace) or Listing()

    def watch(
        self, namespace: str, pattern: str, implementation: str, tell: Tell
    ) -> Generator[None, None, TopicListWatcher]:
        """Start a watcher, with a step for each topic if no client has asked for the same topics lately.

        Raise `PatternError` when Pulsar refuses the pattern, and `NotEvaluable` when it takes too much work.
        """
        while True:
            listing = self.listing(namespace)
            matching = yield from listing.select(pattern, implementation)
            if self._listings.setdefault(namespace, listing) is listing:  # else topics came to an empty namespace
                break
        watcher = TopicListWatcher(namespace, matching, tell)
        matching.watchers[watcher] = None
        return watcher

    def remove(self, watcher: TopicListWatcher) -> None:
        """Stop a watcher. A stopped watcher is ignored."""
        watcher.matching.watchers.pop(watcher, None)
        self._forget_unneeded(watcher.namespace)

    def created(self, name: TopicName) -> None:
        if name.domain == PERSISTENT:
            self._listings.setdefault(str(name.namespace_name), Listing()).created(name)

    def deleted(self, name: TopicName) -> None:
        listing = self._listings.get(str(name.namespace_name))
        if listing is not None:
            listing.deleted(str(name))
            self._forget_unneeded(str(name.namespace_name))

    def _forget_unneeded(self, namespace: str) -> None:
        listing = self._listings.get(namespace)
        if listing is not None and not listing.is_needed:
            del self._listings[namespace]
