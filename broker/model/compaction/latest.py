"""Find the latest message of each key within a limit of memory: by as many passes over the topic as the keys need."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from pulsarium.broker.model.compaction.raw import RawMessage
from pulsarium.proto.compaction import Keyed, open_entry

KEY_BYTES = 150
"""Memory of a key beside the bytes of the key: two objects, and the key's part of a dict that has just grown."""

GONE, WAITS, STAYS = range(3)


class Latest:
    """The state of each message, one byte, and the places of the keys of the present pass.

    A pass accepts new keys until their memory reaches the limit. From then on, messages of other keys wait for the next
    pass. No key is accepted later in the pass, because an earlier message of the key may wait. The entries of
    all passes must be the same, because an entry's number leads to its messages.
    """

    def __init__(self, *, retain_null_key: bool, key_memory: int) -> None:
        self.removed = 0
        self._retain_null_key = retain_null_key
        self._key_memory = key_memory
        self._sizes = array("I")  # of the batch of each entry; 0: no batch, but one message
        self._states = bytearray()
        self._places: dict[bytes, int] = {}
        self._memory = 0
        self._waits = False  # whether messages wait for another pass
        self._entry = self._place = 0  # of the next entry, and of its first message, in a later pass

    def add(self, message: RawMessage) -> None:
        """Learn from the next entry in the first pass."""
        self._entry += 1
        opened = open_entry(message.entry)
        messages = [] if opened is None else opened.messages
        if messages is None:  # the entry is damaged, and stays unchanged
            self._sizes.append(0)
            self._states.append(STAYS)
            return
        self.removed += opened is None
        size = messages[-1].batch_index + 1 if messages else 0
        place = len(self._states)
        self._sizes.append(size)
        self._states.extend(bytes(size or 1))
        for found in messages:
            at = place + max(found.batch_index, 0)
            if found.key is not None:
                self._learn(found, found.key, at)
            elif self._retain_null_key:  # S429-29
                self._states[at] = STAYS
            else:
                self.removed += 1

    def learn_waiting(self, message: RawMessage) -> None:
        """Learn from the next entry in a later pass."""
        place, size = self._next()
        if WAITS not in self._states[place : place + (size or 1)]:
            return
        opened = open_entry(message.entry)
        for found in () if opened is None else opened.messages or ():
            at = place + max(found.batch_index, 0)
            if found.key is not None and self._states[at] == WAITS:
                self._states[at] = GONE
                self._learn(found, found.key, at)

    def end_pass(self) -> Iterator[None]:
        """Decide about the keys of this pass, in steps. Raise `RuntimeError` like `check`."""
        self.check()
        places, states = self._places, self._states
        while places:
            states[places.popitem()[1]] = STAYS
            yield
        self._places = {}  # popitem keeps the memory of the table
        self._memory = self._entry = self._place = 0

    def check(self) -> None:
        """Raise `RuntimeError` when this pass had other entries than the first, because wrong messages may stay."""
        if self._entry != len(self._sizes):
            raise RuntimeError("entries of the topic became unreadable during its compaction: compact the topic again")

    def begin_again(self) -> bool:
        """Return whether messages wait for another pass, which begins."""
        waits, self._waits = self._waits, False
        return waits

    def left_of(self, message: RawMessage) -> bytes | None:
        """Return the retained part of the next entry after all passes, or None."""
        place, size = self._next()
        if not size:
            return message.entry if self._states[place] == STAYS else None
        states = self._states[place : place + size]
        if STAYS not in states:
            return None
        opened = open_entry(message.entry)
        stays = [index for index, state in enumerate(states) if state == STAYS]
        return None if opened is None else opened.rewritten(stays)

    def _learn(self, message: Keyed, key: bytes, at: int) -> None:
        places = self._places
        if key in places:
            self.removed += 1
            if message.has_value:
                places[key] = at
            else:
                del places[key]
        elif self._waits or self._memory >= self._key_memory:
            self._waits = True
            self._states[at] = WAITS
        elif message.has_value:
            places[key] = at
            self._memory += KEY_BYTES + len(key)
        else:
            self.removed += 1

    def _next(self) -> tuple[int, int]:
        place, size = self._place, self._sizes[self._entry]
        self._entry += 1
        self._place += size or 1
        return place, size
