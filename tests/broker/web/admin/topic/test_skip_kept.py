"""skipByMessageIds and the store: writes, reads, and their failures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.storage.interface import ReadDone, StorageError
from tests.broker.held import HeldStorage
from tests.broker.model.dispatch.sharing import got, joined
from tests.broker.web.admin.rest import TOPICS, Answer, Rest, rest_of
from tests.broker.web.admin.skipped import format_1, posted, send_batch, skip, triplet
from tests.broker.wire import Bed, Shared, plain, serving

pytestmark = pytest.mark.usefixtures("autojump_clock")


class Store(HeldStorage):
    """A store that can fail to read."""

    broken = False

    def read(self, ledger_id: int, first: int, last: int, done: ReadDone) -> None:
        if self.broken or (not self.holding_reads and ledger_id not in self.entries):
            done(StorageError("read failed: the disk is broken"))
        else:
            super().read(ledger_id, first, last, done)


class Stage:
    """A Shared subscription with two messages and a batch of five, whose entries are not cached."""

    def __init__(self, bed: Bed, store: Store, rest: Rest) -> None:
        self.bed = bed
        self.store = store
        self.rest = rest
        self.sent: list[Position] = []
        self.answers: list[Answer] = []

    async def fill(self) -> None:
        self.sender = await self.bed.connect()
        await self.sender.producer()
        await self.rest.done("PUT", f"{TOPICS}/t/subscription/sub", "earliest")
        self.sent = await self.sender.publish(plain(b"0"), plain(b"1"))
        self.sent.append(await send_batch(self.sender))
        await self.sender.alive()

    @property
    def cursor(self) -> ManagedCursor:
        return self.bed.subscription().cursor

    def untouched(self) -> bool:
        return self.cursor.backlog() == 3 and not len(self.cursor.batch_acks)

    async def post(self, *ids: dict[str, int]) -> None:
        self.answers.append(await posted(self.rest, format_1(ids)))

    @property
    def statuses(self) -> list[int]:
        return [answer.status for answer in self.answers]


@asynccontextmanager
async def stage(store: Store | None = None, **config: Any) -> AsyncIterator[Stage]:
    store = store or Store()
    async with serving(Config(managedLedgerCacheSizeMB=0, **config), storage=store) as bed:
        made = Stage(bed, store, rest_of(bed))
        if not store.entries:
            await made.fill()
        yield made


@pytest.mark.req("S423-54")
@pytest.mark.parametrize("type_known", [False, True])
async def test_a_skip_outlives_a_kill(type_known: bool) -> None:
    async with stage() as first:
        if type_known:
            await (await first.bed.connect()).subscribe(type=Shared)
        await skip(first.rest, first.sent[1], triplet(first.sent[2], 3))
        left = first.store.left_behind()
    async with stage(left) as second:
        wire = await joined(second.bed, "c", type=Shared)
        found = [(message.position, list(message.command.ack_set)) for message in await got(wire)]
        assert found == [(first.sent[0], []), (first.sent[2], [0b10111])]


@pytest.mark.req("S423-54")
async def test_a_skip_outlives_an_unload() -> None:
    async with stage() as on:
        await skip(on.rest, on.sent[0], triplet(on.sent[2], 0))
        await on.rest.done("PUT", f"{TOPICS}/t/unload")
        assert (on.cursor.mark_delete, on.cursor.backlog()) == (on.sent[0], 2)
        assert on.cursor.batch_acks.words(on.sent[2]) == [0b11110]


@pytest.mark.req("S423-49")
async def test_only_parts_of_entries_have_to_be_read() -> None:
    async with stage() as on:
        on.store.broken = True
        status, text = await on.rest.refused(
            "POST",
            f"{TOPICS}/t/subscription/sub/skipByMessageIds",
            format_1([triplet(on.sent[0]), triplet(on.sent[2], 1)]),
        )
        assert (status, "read failed: the disk is broken" in text) == (500, True)
        assert on.untouched()
        await skip(on.rest, *on.sent)
        assert on.cursor.backlog() == 0


@pytest.mark.req("S423-49")
async def test_the_broker_goes_on_while_entries_are_read() -> None:
    async with stage() as on, trio.open_nursery() as nursery:
        on.store.holding_reads = True
        nursery.start_soon(on.post, triplet(on.sent[2], 1), triplet(on.sent[0]))
        await trio.testing.wait_all_tasks_blocked()
        assert (on.answers, on.untouched()) == ([], True)
        await on.sender.publish(plain(b"2"))
        on.store.release_reads()
        await trio.testing.wait_all_tasks_blocked()
        assert (on.statuses, on.cursor.backlog()) == ([204], 3)
        assert on.cursor.batch_acks.words(on.sent[2]) == [0b11101]


@pytest.mark.parametrize(
    ("meanwhile", "status", "backlog"),
    [
        (("DELETE", "?force=true"), 404, None),
        (("DELETE", "/subscription/sub"), 404, None),
        (("PUT", "/unload"), 204, 2),
        (("POST", "/subscription/sub/skip_all"), 204, 0),
        (("DELETE", "/truncate"), 204, 0),
    ],
)
async def test_a_skip_stands_what_happens_to_its_topic_while_entries_are_read(
    meanwhile: tuple[str, str], status: int, backlog: int | None
) -> None:
    async with stage() as on, trio.open_nursery() as nursery:
        on.store.holding_reads = True
        nursery.start_soon(on.post, triplet(on.sent[2], 1), triplet(on.sent[0]))
        await trio.testing.wait_all_tasks_blocked()
        method, path = meanwhile
        await on.rest.done(method, f"{TOPICS}/t{path}")
        on.store.release_reads()
        await trio.testing.wait_all_tasks_blocked()
        assert on.statuses == [status]
        if backlog is not None:
            assert on.cursor.backlog() == backlog


async def test_a_consumer_acknowledges_while_entries_are_read() -> None:
    async with stage() as on, trio.open_nursery() as nursery:
        wire = await joined(on.bed, "c", type=Shared)
        await wire.messages(3)
        on.store.holding_reads = True
        nursery.start_soon(on.post, triplet(on.sent[2], 1), triplet(on.sent[0]))
        await trio.testing.wait_all_tasks_blocked()
        await wire.ack(on.sent[2])
        on.store.release_reads()
        await trio.testing.wait_all_tasks_blocked()
        assert (on.statuses, on.cursor.backlog()) == ([204], 1)


async def test_many_entries_are_read_in_slices() -> None:
    async with stage() as on:
        batches = [await send_batch(on.sender, size=2) for _ in range(200)]
        turns: list[int] = []
        for count in (1, 200):
            turns.append(0)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(on.post, *[triplet(batch, 1) for batch in batches[:count]])
                while len(on.answers) < len(turns):
                    turns[-1] += 1
                    await trio.lowlevel.checkpoint()
        assert 2 <= turns[1] - turns[0] <= 4  # 199 // 64; trio chooses at random which task runs first
        assert on.statuses == [204, 204]
        assert [on.cursor.batch_acks.words(batch) for batch in batches] == [[1]] * 200


@pytest.mark.req("S423-58")
async def test_a_skip_whose_commit_fails_is_answered_500() -> None:
    async with stage() as on, trio.open_nursery() as nursery:
        on.store.holding = True
        nursery.start_soon(on.post, triplet(on.sent[0]))
        await trio.testing.wait_all_tasks_blocked()
        assert on.answers == []  # the answer waits for the commit
        on.store.fail()
        await trio.testing.wait_all_tasks_blocked()
        assert on.statuses == [500]
        assert "commit failed: the disk is full" in on.answers[0].reason


@pytest.mark.req("S423-58")
async def test_a_fault_of_the_cursor_is_answered_500(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage() as on:

        def ack(self: ManagedCursor, position: Position) -> bool:
            raise RuntimeError("a fault")

        monkeypatch.setattr(ManagedCursor, "ack", ack)
        await on.post(triplet(on.sent[0]))
        assert (on.statuses, "RuntimeError: a fault" in on.answers[0].reason) == ([500], True)


@pytest.mark.req("S423-63", "S423-64")
async def test_skips_are_kept_up_to_the_caps_of_acknowledgements() -> None:
    """Skips have the same caps as acknowledgements. Those beyond the caps are lost when the broker is killed."""
    caps: dict[str, Any] = {
        "managedLedgerMaxUnackedRangesToPersist": 2,
        "managedLedgerMaxBatchDeletedIndexToPersist": 1,
    }
    async with stage(**caps) as first:
        sent = await first.sender.publish(*[plain(b"%d" % number) for number in range(8)])
        batch = await send_batch(first.sender)
        await skip(first.rest, *sent[::2], triplet(first.sent[2], 0), triplet(batch, 0))
        assert first.cursor.backlog() == 8
        left = first.store.left_behind()
    async with stage(left, **caps) as second:
        assert [second.cursor.is_acked(position) for position in sent[::2]] == [True, True, False, False]
        acks = second.cursor.batch_acks
        assert (acks.words(first.sent[2]), acks.words(batch)) == ([0b11110], [])
        assert second.bed.topic().ledger.count == 12
