"""Find the latest message of each key within a limit of memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from pulsarium.broker.model.compaction.raw import RawMessage
from pulsarium.broker.model.compaction.waiting import WaitingFile, WaitingMessages
from pulsarium.proto.compaction import OpenEntry, open_entry

KEY_BYTES = 150
"""Memory of a key beside the bytes of the key: two objects, and the key's part of a dict that has just grown."""

GONE, STAYS = range(2)
_STEP = 1000  # keys between two steps


class RetainedOfBatch(NamedTuple):
    """The messages of a batch that compaction retains."""

    opened: OpenEntry
    indexes: list[int]

    def entry(self) -> bytes | None:
        """Return the entry with only these messages."""
        return self.opened.rewritten(self.indexes)


class LatestMessages:
    """The state of each message, one byte, and the places of some keys.

    Keys are accepted until their memory reaches the limit. From then on, messages of other keys wait in a file, and
    their keys are accepted in later turns. No key is accepted later in the same turn, because an earlier message of the
    key may wait. Both passes over the topic must have the same entries, because the number of an entry leads to its
    messages.
    """

    def __init__(self, *, retain_null_key: bool, key_memory: int) -> None:
        self.removed = 0
        self._retain_null_key = retain_null_key
        self._key_memory = key_memory
        self._sizes = array("I")  # of the batch of each entry; 0: no batch, but one message
        self._states = bytearray()
        self._places: dict[bytes, int] = {}
        self._memory = 0
        self._file = WaitingFile()
        self._waiting = WaitingMessages(self._file)
        self._is_full = False  # whether messages of other keys wait
        self._entry = self._place = 0  # of the next entry, and of its first message, in the pass that writes

    def add(self, opened: OpenEntry | None) -> Iterator[None]:
        """Learn from the next entry, in steps, or from None for an entry that no client sees."""
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
        for number, (index, key, has_value) in enumerate(messages, 1):
            if number % _STEP == 0:
                yield
            at = place + max(index, 0)
            if key is not None:
                self._learn(key, at, has_value)
            elif self._retain_null_key:  # topicCompactionRetainNullKey
                self._states[at] = STAYS
            else:
                self.removed += 1

    def decide(self) -> Iterator[None]:
        """Decide about all messages, in steps. Raise `RuntimeError` when waiting messages cannot be stored."""
        yield from self._end_turn()
        left = self._waiting.parts()
        while left:
            part = left.pop()
            self._waiting = WaitingMessages(self._file, part.depth)
            for messages in part.read():
                for message in messages:
                    self._learn(*message)
                yield
            yield from self._end_turn()
            left += self._waiting.parts()

    def close(self) -> None:
        """Close the file of waiting messages."""
        self._file.close()

    def check(self) -> None:
        """Raise `RuntimeError` when both passes had different entries, because wrong messages may stay."""
        if self._entry != len(self._sizes):
            raise RuntimeError("entries of the topic became unreadable during its compaction: compact the topic again")

    def left_of(self, message: RawMessage) -> RetainedOfBatch | bytes | None:
        """Return the retained part of the next entry in the second pass, or None."""
        place, size = self._place, self._sizes[self._entry]
        self._entry += 1
        self._place += size or 1
        if not size:
            return message.entry if self._states[place] == STAYS else None
        stays = [index for index, state in enumerate(self._states[place : place + size]) if state == STAYS]
        opened = open_entry(message.entry) if stays else None
        return None if opened is None else RetainedOfBatch(opened, stays)

    def _learn(self, key: bytes, at: int, has_value: bool) -> None:
        places = self._places
        if key in places:
            self.removed += 1
            if has_value:
                places[key] = at
            else:
                del places[key]
        elif self._is_full or self._memory >= self._key_memory:
            self._is_full = True
            self._waiting.add(key, at, has_value)
        elif has_value:
            places[key] = at
            self._memory += KEY_BYTES + len(key)
        else:
            self.removed += 1

    def _end_turn(self) -> Iterator[None]:
        """Decide about the accepted keys, in steps, and forget them."""
        places, states = self._places, self._states
        while places:
            for _ in range(min(_STEP, len(places))):
                states[places.popitem()[1]] = STAYS
            yield
        self._places = {}  # popitem keeps the memory of the table
        self._memory, self._is_full = 0, False
