"""Compaction of more keys than fit in its memory: the other keys wait in a file, and the topic is read twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.broker.model.compaction.compactor import TwoPhaseCompactor
from pulsarium.broker.model.compaction.latest import KEY_BYTES
from pulsarium.broker.model.compaction.raw import RawMessage
from pulsarium.broker.model.compaction.waiting import BLOCK
from pulsarium.broker.model.ledger.position import Position
from tests.broker.model.compaction.sent import Sent, sent
from tests.broker.model.compaction.topics import single


@dataclass
class Topic:
    """A raw reader of these entries that counts its passes, and a writer of the result."""

    entries: Sequence[bytes]
    passes: int = 0
    removed: int = 0
    kept: list[tuple[Position, bytes]] = field(default_factory=list)
    is_read: bool = True

    @property
    def last(self) -> Position:
        return Position(1, len(self.entries) - 1)

    def rewind(self) -> None:
        self.passes += 1
        self.is_read = False

    def read(self, ready: Callable[[], None]) -> list[RawMessage] | None:
        found = [] if self.is_read else [RawMessage(Position(1, at), one) for at, one in enumerate(self.entries)]
        self.is_read = True
        return found

    def write(self, position: Position, entry: bytes) -> None:
        self.kept.append((position, entry))


def compacted(topic: Topic, key_memory: int, *, retain_null_key: bool = False) -> Topic:
    for _ in TwoPhaseCompactor(key_memory=key_memory).compact(
        topic, topic, lambda: None, retain_null_key=retain_null_key
    ):
        pass
    return topic


def test_keys_beyond_the_memory_need_no_other_pass_and_leave_the_same() -> None:
    entries = [single(f"k{number % 100}", b"%d" % number) for number in range(1000)]
    topic = compacted(Topic(entries), 25 * (KEY_BYTES + 2))
    assert topic.passes == 2
    assert topic.kept == [(Position(1, number), entries[number]) for number in range(900, 1000)]
    assert topic.removed == 900


def test_waiting_keys_are_written_to_a_file_and_leave_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    entries = [single(f"{number % 300}-" + "k" * BLOCK, b"%d" % number) for number in range(600)]
    topic = compacted(Topic(entries), 10 * BLOCK)
    assert topic.kept == [(Position(1, number), entries[number]) for number in range(300, 600)]
    assert not list(tmp_path.iterdir())


def test_a_disk_without_room_for_waiting_keys_fails_the_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    entries = [single(f"{number}-" + "k" * BLOCK, b"v") for number in range(3)]
    with pytest.raises(RuntimeError, match=r"keys of the topic cannot be stored in .*missing.*: .*TMPDIR"):
        compacted(Topic(entries), 1)


@settings(max_examples=200, deadline=None)
@given(st.lists(sent, max_size=20), st.booleans(), st.integers(1, 4))
def test_any_number_of_waiting_keys_leaves_the_same_and_counts_the_same(
    messages: list[Sent], retain_null_key: bool, keys: int
) -> None:
    entries = [one.entry for one in messages]
    wanted = compacted(Topic(entries), 1 << 30, retain_null_key=retain_null_key)
    found = compacted(Topic(entries), keys * KEY_BYTES, retain_null_key=retain_null_key)
    assert (found.kept, found.removed) == (wanted.kept, wanted.removed)


def test_a_key_whose_message_waits_is_not_accepted_when_another_key_is_deleted() -> None:
    """Compaction would otherwise keep two messages of the key, one from each pass."""
    entries = [single(*each) for each in (("a", b"1"), ("b", b"1"), ("a", b""), ("b", b"2"))]
    topic = compacted(Topic(entries), 1)
    assert topic.kept == [(Position(1, 3), entries[3])]


def test_entries_that_become_unreadable_between_passes_fail_the_compaction() -> None:
    topic = Topic([single("a", b"1"), single("b", b"1"), single("c", b"1")])
    steps = TwoPhaseCompactor().compact(topic, topic, lambda: None, retain_null_key=False)
    next(steps)
    topic.entries = topic.entries[1:]
    with pytest.raises(RuntimeError, match="became unreadable"):
        for _ in steps:
            pass
