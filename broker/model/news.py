"""Tell what people want to know of a cluster, once for each event, at the place where it happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum


class Kind(Enum):
    """The kinds of events, by their names in JSON."""

    TOPIC_CREATED = "topicCreated"
    TOPIC_DELETED = "topicDeleted"
    SUBSCRIPTION_CREATED = "subscriptionCreated"
    SUBSCRIPTION_DELETED = "subscriptionDeleted"
    CLIENT_JOINED = "clientJoined"
    CLIENT_LEFT = "clientLeft"
    POLICY_CHANGED = "policyChanged"
    FAULT_HIT = "faultHit"
    LAB_ACT = "labAct"
    LOOP_FOUND = "loopFound"
    QUOTA_EXCEEDED = "quotaExceeded"
    STORAGE_FULL = "storageFull"
    UNLOADED = "unloaded"
    SCHEMA_CHANGED = "schemaChanged"


Told = Callable[[Kind, Mapping[str, object]], None]

_by: ContextVar[str] = ContextVar("by", default="")


class News:
    """Tell events to listeners. Without a listener, an event costs nothing."""

    def __init__(self) -> None:
        self._listeners: dict[Kind, list[Told]] = {kind: [] for kind in Kind}

    def listen(self, told: Told, *kinds: Kind) -> None:
        """Tell events of these kinds to a listener from now on."""
        for kind in kinds:
            self._listeners[kind].append(told)

    def ignore(self, told: Told) -> None:
        """Tell no more events to a listener."""
        for listeners in self._listeners.values():
            if told in listeners:
                listeners.remove(told)

    def tell(self, kind: Kind, **about: object) -> None:
        """Tell an event with the names whom it concerns."""
        for told in self._listeners[kind]:
            told(kind, about)


def acting() -> str:
    """Return on whose behalf the current task acts, or "" for the broker itself."""
    return _by.get()


@contextmanager
def acting_for(by: str) -> Iterator[None]:
    """Act on behalf of somebody until the block ends: a person, a test, an exploration, a program."""
    before = _by.set(by)
    try:
        yield
    finally:
        _by.reset(before)
