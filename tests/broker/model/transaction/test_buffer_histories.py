"""Random transactions on one topic: committed messages are visible in order, up to the first open transaction."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.errors import NotAllowedError
from tests.broker.model.transaction.buffered import Buffered, txn

TRANSACTIONS = 5
OPEN, COMMITTED, ABORTED, PLAIN = "open", "committed", "aborted", "plain"


@dataclass
class Expected:
    """A model of the topic without positions: each entry belongs to a span of a transaction."""

    entries: list[tuple[bytes, int]] = field(default_factory=list)  # the payload, and the number of its span
    spans: list[str] = field(default_factory=lambda: [PLAIN])
    current: dict[int, int] = field(default_factory=dict)  # the number of the span, by transaction
    low_watermark: int = -1
    used: bool = False

    def publish(self, payload: bytes, of: int | None) -> None:
        if of is None:
            self.entries.append((payload, 0))
            return
        self.used = True
        if self.spans[self.current.get(of, 0)] not in (OPEN, ABORTED):
            self.current[of] = len(self.spans)
            self.spans.append(OPEN)
        self.entries.append((payload, self.current[of]))

    def end(self, of: int, commit: bool, low_watermark: int) -> None:
        state = self.spans[self.current.get(of, 0)]
        if state == OPEN:
            self.spans[self.current[of]] = COMMITTED if commit else ABORTED
        elif not commit and self.used and state != ABORTED:
            self.current[of] = len(self.spans)
            self.spans.append(ABORTED)
        self.low_watermark = max(self.low_watermark, low_watermark)
        for _, span in self.entries:
            if self.spans[span] == OPEN:
                (first,) = [each for each, its in self.current.items() if its == span]
                if first > self.low_watermark:
                    break
                self.spans[span] = ABORTED

    def visible(self) -> list[bytes]:
        found = []
        for payload, span in self.entries:
            if self.spans[span] == OPEN:
                break
            if self.spans[span] != ABORTED:
                found.append(payload)
        return found

    def ongoing(self) -> int:
        return self.spans.count(OPEN)


class History:
    """A topic and models of it: one with the pending commits, and one without them."""

    def __init__(self) -> None:
        self.broker = Buffered(managedLedgerMaxEntriesPerLedger=3, managedLedgerMinLedgerRolloverTimeMinutes=0)
        self.noted = Expected()
        self.kept: Expected | None = None  # the model without pending commits, while commits are held back
        self.payloads = 0

    def step(self, operation: str, of: int, commit: bool, low_watermark: int) -> None:
        getattr(self, operation)(of, commit, low_watermark)
        self.broker.finish()
        expected = self.kept or self.noted
        assert self.broker.visible() == expected.visible()
        assert self.broker.buffer.ongoing == expected.ongoing()

    def plain(self, *_: Any) -> None:
        self._publish(None)

    def sent(self, of: int, *_: Any) -> None:
        if of <= self.noted.low_watermark:
            with pytest.raises(NotAllowedError):
                self.broker.publish(b"refused", of=txn(of))
        else:
            self._publish(of)

    def _publish(self, of: int | None) -> None:
        self.payloads += 1
        payload = b"%d" % self.payloads
        self.broker.publish(payload, of=None if of is None else txn(of))
        self.noted.publish(payload, of)

    def end(self, of: int, commit: bool, low_watermark: int) -> None:
        low_watermark = min(low_watermark, of - 1)
        self.broker.end(txn(of), commit=commit, low_watermark=low_watermark)
        self.noted.end(of, commit, low_watermark)

    def hold(self, *_: Any) -> None:
        if self.kept is None:
            self.broker.finish()
            self.broker.disk.hold(reads=False)
            self.kept = deepcopy(self.noted)

    def let_go(self, *_: Any) -> None:
        self.broker.disk.let_go()
        self.kept = None

    def fail(self, *_: Any) -> None:
        if self.broker.disk.waiting:
            assert self.kept is not None
            self.broker.disk.fail()
            self.noted = self.kept
            self.noted.low_watermark = -1
        self.let_go()

    def reload(self, *_: Any) -> None:
        self.broker.reload()
        self.noted.low_watermark = -1

    def kill(self, *_: Any) -> None:
        self.broker.kill()
        self.noted = self.kept or self.noted
        self.noted.low_watermark = -1
        self.kept = None


USUAL = ("plain", "sent", "sent", "sent", "end", "end")
STEPS = st.tuples(
    st.sampled_from([*USUAL, *USUAL, "hold", "let_go", "fail", "reload", "kill"]),
    st.integers(0, TRANSACTIONS - 1),
    st.booleans(),
    st.integers(-1, TRANSACTIONS),
)


@given(steps=st.lists(STEPS, max_size=40))
async def test_consumers_see_what_was_committed_whatever_happens(steps: list[tuple[str, int, bool, int]]) -> None:
    history = History()
    for step in steps:
        history.step(*step)
    history.let_go()
    history.kill()
    assert history.broker.visible() == history.noted.visible()


CUT = (
    *(("plain", 0, True, -1), ("sent", 1, True, -1), ("sent", 2, True, -1), ("plain", 0, True, -1)),
    *(("end", 1, False, -1), ("sent", 1, True, -1), ("sent", 3, True, -1), ("end", 2, True, -1)),
    *(("sent", 2, True, -1), ("plain", 0, True, -1), ("end", 3, True, 2), ("sent", 4, True, -1), ("end", 4, False, 3)),
)


async def test_a_kill_behind_each_commit() -> None:
    """The store is always in the state after some step, and has each entry with the outcome of its transaction."""
    cuts = 0
    while True:
        history = History()
        history.broker.sent(b"first")  # creates the topic
        history.noted.publish(b"first", None)
        history.hold()
        expected = [deepcopy(history.noted)]  # the model after each number of commits
        for step in CUT:
            history.step(*step)
            commits = len(history.broker.disk.waiting) - len(expected) + 1
            expected += [deepcopy(history.noted) for _ in range(commits)]
        if cuts == len(expected):
            break
        history.broker.disk.release(cuts)
        history.broker.kill()
        assert history.broker.visible() == expected[cuts].visible()
        assert history.broker.buffer.ongoing == expected[cuts].ongoing()
        cuts += 1
    assert cuts > len(CUT)
