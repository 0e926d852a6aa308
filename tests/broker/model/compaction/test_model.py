"""Compaction of random entries in all forms, compared with a dict."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pulsarium.broker.model.compaction.compactor import KEY_MEMORY, TwoPhaseCompactor
from pulsarium.broker.model.compaction.latest import KEY_BYTES
from pulsarium.broker.model.ledger.position import Position
from tests.broker.conftest import run_without_waiting
from tests.broker.held import HeldStorage
from tests.broker.model.compaction.sent import Sent, sent
from tests.broker.model.compaction.topics import (
    Found,
    broker_on,
    compact,
    compacted_entries,
    messages_in,
    publish,
    topic_of,
)


@dataclass
class Model:
    """Messages that compaction should keep: the latest one of each key, and those without a key."""

    retain_null_key: bool
    latest: dict[str, Found] = field(default_factory=dict)
    keyless: list[Found] = field(default_factory=list)

    def take(self, position: Position, entry: Sent) -> None:
        if entry.strange is not None:
            return
        if entry.encrypted or not entry.is_batch:
            key, value = entry.messages[0]
            shown = entry.entry
            self._put(position, -1, key, messages_in([(position, shown)])[0][3] if entry.is_batch else value)
        else:
            for index, (key, value) in enumerate(entry.messages):
                self._put(position, index, key, value)

    def _put(self, position: Position, index: int, key: str | None, value: bytes) -> None:
        if key is None:
            self.keyless += [(position, index, key, value)] if self.retain_null_key else []
        elif value:
            self.latest[key] = (position, index, key, value)
        else:
            self.latest.pop(key, None)

    def left(self) -> list[Found]:
        return sorted([*self.keyless, *self.latest.values()], key=lambda found: found[:2])


@pytest.mark.req("B-32", "S429-11", "S429-15", "S429-17", "S429-29", "S429-30", "S429-31")
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(sent, max_size=8), min_size=1, max_size=3),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 2 * KEY_BYTES, KEY_MEMORY]),
)
@example([[Sent((("a", b"1"), (None, b"2"), ("a", b"")), is_batch=True)], [Sent((("b", b"1"),))]], True, True, 1)
def test_compaction_leaves_what_a_dict_would(
    rounds: list[list[Sent]], retain_null_key: bool, restarts: bool, key_memory: int
) -> None:
    """Publish and compact each round of entries, with or without a restart before it, in one pass or many."""
    model = Model(retain_null_key)

    async def play() -> None:
        storage = HeldStorage()
        left = list(rounds)
        while left:
            async with broker_on(storage, topicCompactionRetainNullKey=retain_null_key) as broker:
                for _ in range(1 if restarts else len(left)):
                    entries = left.pop(0)
                    for position, entry in zip(
                        publish(broker, *(each.entry for each in entries)), entries, strict=True
                    ):
                        model.take(position, entry)
                    topic_of(broker).compaction.compactor = TwoPhaseCompactor(key_memory=key_memory)
                    await compact(topic_of(broker))
                    compacted = topic_of(broker).compaction.compacted
                    while compacted.read(Position(-1, -1), 1, lambda: None) is None:
                        pass
                    assert messages_in(compacted_entries(topic_of(broker))) == model.left()

    run_without_waiting(play)
