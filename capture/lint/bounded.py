"""Memory with an end, for what is kept of long conversations."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Bounded(Generic[K, V]):
    """A dict that forgets its oldest keys when it has more than `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[K, V] = {}
        self.whole = True
        """Whether nothing was forgotten yet."""

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def first(self) -> K | None:
        """The oldest key."""
        return next(iter(self._values), None)

    def get(self, key: K | None) -> V | None:
        return None if key is None else self._values.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self._values[key] = value
        if len(self._values) > self._most:
            del self._values[next(iter(self._values))]
            self.whole = False

    def pop(self, key: K) -> V | None:
        return self._values.pop(key, None)
