"""Visibility of messages in open, committed and aborted transactions."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import PROFILES
from pulsarium.broker.model.errors import NotAllowedError, PersistenceError
from pulsarium.broker.model.ledger.interceptors import find_index, index_of
from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.broker.model.ledger.sequence import read_through
from pulsarium.broker.model.ledger.transactions import transaction_of
from pulsarium.broker.model.topic.last_message import last_message
from pulsarium.broker.model.transaction.buffer import MOST_OVERDUE, TXN_ABORT, TXN_COMMIT
from pulsarium.proto.entry import parse_metadata
from tests.broker.held import HeldStorage
from tests.broker.model.ledger.indexed import INTERCEPTORS
from tests.broker.model.transaction.buffered import Buffered, txn

COMMIT, ABORT = True, False


async def test_nothing_of_it_nor_behind_it_is_read_before_the_commit() -> None:
    broker = Buffered()
    before = broker.sent(b"before")
    broker.sent(b"in 1", of=txn(5))
    broker.sent(b"behind")
    broker.sent(b"in 2", of=txn(5))
    assert broker.visible() == [b"before"]
    assert broker.topic.ledger.max_read == before
    assert last_message(broker.topic).position == before
    assert broker.buffer.ongoing == 1
    broker.ended(txn(5), commit=COMMIT)
    assert broker.visible() == [b"before", b"in 1", b"behind", b"in 2"]
    assert broker.topic.ledger.max_read == broker.topic.ledger.last_confirmed
    assert (broker.buffer.ongoing, broker.buffer.committed, broker.buffer.aborted) == (0, 1, 0)


async def test_the_last_message_is_no_marker() -> None:
    broker = Buffered()
    broker.sent(b"in", of=txn(5))
    assert last_message(broker.topic).position == EARLIEST
    broker.ended(txn(5), commit=COMMIT)
    last = broker.topic.ledger.last_confirmed
    assert last_message(broker.topic).position == Position(last.ledger_id, 0)
    assert last.entry_id == 1


async def test_an_abort_lets_go_of_what_is_behind_it() -> None:
    broker = Buffered()
    broker.sent(b"in", of=txn(6))
    behind = broker.sent(b"behind")
    broker.sent(b"in 2", of=txn(6))
    broker.ended(txn(6), commit=ABORT)
    assert broker.visible() == [b"behind"]
    assert last_message(broker.topic).position == behind
    assert broker.buffer.stats_of(txn(6)).aborted


async def test_commit_and_abort_markers_are_as_pulsar_writes_them() -> None:
    broker = Buffered()
    broker.sent(b"a", of=txn(7, most=3))
    for commit, marker_type in ((COMMIT, TXN_COMMIT), (ABORT, TXN_ABORT)):
        broker.ended(txn(7, most=3), commit=commit)
        ledger = broker.topic.ledger
        entry = ledger.read_now(ledger.last_confirmed)
        metadata = parse_metadata(entry)
        assert (metadata.marker_type, metadata.producer_name) == (marker_type, "pulsar.txn.marker")
        assert metadata.sequence_id == 2**64 - 1
        assert transaction_of(entry) == txn(7, most=3)


async def test_an_abort_where_nothing_was_ever_sent_leaves_no_marker() -> None:
    broker = Buffered()
    broker.sent(b"plain")
    broker.ended(txn(1), commit=ABORT)
    assert broker.topic.ledger.count == 1
    assert broker.buffer.stats().state == "NoSnapshot"
    broker.ended(txn(1), commit=COMMIT)
    assert broker.topic.ledger.count == 2
    broker.sent(b"in", of=txn(2))
    assert broker.buffer.stats().state == "Ready"
    broker.ended(txn(3), commit=ABORT)
    assert broker.topic.ledger.count == 4


# messages after the end of their transaction (cmd 6)


async def test_messages_after_their_commit_are_held_until_the_low_watermark() -> None:
    broker = Buffered()
    broker.sent(b"in", of=txn(21))
    broker.ended(txn(21), commit=COMMIT, low_watermark=20)
    late = broker.sent(b"late", of=txn(21))
    broker.sent(b"plain")
    assert broker.visible() == [b"in"]
    assert broker.buffer.stats_of(txn(21)).start == late
    broker.sent(b"next", of=txn(22))
    broker.ended(txn(22), commit=COMMIT, low_watermark=21)
    assert broker.visible() == [b"in", b"plain", b"next"]  # the committed message stays visible
    assert (broker.buffer.committed, broker.buffer.aborted) == (2, 1)


async def test_the_low_watermark_ends_all_that_are_first() -> None:
    broker = Buffered()
    for least in (1, 2, 9, 3):
        broker.sent(b"%d" % least, of=txn(least))
    broker.sent(b"other", of=txn(1, most=1))
    broker.ended(txn(4), commit=COMMIT, low_watermark=3)
    assert list(broker.topic.ledger.transactions.ongoing) == [txn(9), txn(3), txn(1, most=1)]
    broker.ended(txn(9), commit=COMMIT, low_watermark=3)
    assert list(broker.topic.ledger.transactions.ongoing) == [txn(1, most=1)]
    assert broker.buffer.stats().low_watermarks == {0: 3}


async def test_one_end_aborts_a_bounded_number_of_those_below_the_low_watermark() -> None:
    broker = Buffered()
    count = 2 * MOST_OVERDUE
    for least in range(count + 1):
        broker.publish(b"x", of=txn(least))
    broker.finish()
    left = []
    for least in range(count + 1, count + 4):
        broker.ended(txn(least), commit=ABORT, low_watermark=count)
        left.append(broker.buffer.ongoing)
    assert left == [MOST_OVERDUE + 1, 1, 0]


async def test_messages_below_the_low_watermark_are_refused() -> None:
    broker = Buffered()
    broker.ended(txn(4), commit=COMMIT, low_watermark=3)
    with pytest.raises(NotAllowedError, match=r"^Transaction \[\(0,3\)\] has been ended\. Please use a new"):
        broker.publish(b"late", of=txn(3))
    broker.sent(b"fine", of=txn(4))
    broker.sent(b"another's", of=txn(3, most=1))


# pending and failed commits


async def test_all_of_a_life_in_one_turn() -> None:
    broker = Buffered()
    broker.publish(b"a", of=txn(1))
    broker.publish(b"plain")
    broker.end(txn(1), commit=COMMIT)
    broker.publish(b"late", of=txn(1))
    broker.publish(b"behind")
    broker.finish()
    assert broker.visible() == [b"a", b"plain"]
    assert len(broker.publisher.kept) == 4


async def test_a_commit_that_fails_changes_nothing() -> None:
    broker = Buffered()
    broker.sent(b"in", of=txn(1))
    broker.disk.holding = True
    broker.ended(txn(1), commit=COMMIT)
    broker.publish(b"other", of=txn(2))
    broker.publish(b"late", of=txn(1))
    broker.finish()
    broker.disk.fail()
    broker.disk.release()
    broker.finish()
    assert len(broker.publisher.failures) == 2
    assert broker.visible() == []
    assert list(broker.topic.ledger.transactions.ongoing) == [txn(1)]
    assert broker.buffer.committed == 0
    broker.ended(txn(1), commit=COMMIT)
    assert broker.visible() == [b"in"]
    broker.kill()
    assert broker.visible() == [b"in"]
    assert broker.buffer.ongoing == 0


async def test_a_fenced_topic_ends_nothing() -> None:
    broker = Buffered()
    broker.sent(b"in", of=txn(1))
    broker.topic.ledger.fenced = True
    with pytest.raises(PersistenceError):
        broker.end(txn(1), commit=ABORT)
    broker.finish()
    assert not broker.topic.ledger.transactions.aborted
    assert "1:" not in "".join(broker.stored().values())


# storage


@pytest.mark.parametrize("again", ["reload", "kill"])
async def test_transactions_are_there_again_after_unload_and_kill(again: str) -> None:
    broker = Buffered()
    broker.sent(b"plain")
    broker.sent(b"aborted", of=txn(1))
    broker.ended(txn(1), commit=ABORT)
    broker.sent(b"committed", of=txn(2))
    broker.ended(txn(2), commit=COMMIT)
    broker.sent(b"later", of=txn(9))
    broker.sent(b"first", of=txn(4))
    broker.sent(b"behind")
    getattr(broker, again)()
    assert broker.visible() == [b"plain", b"committed"]
    assert list(broker.topic.ledger.transactions.ongoing) == [txn(9), txn(4)]
    assert (broker.buffer.committed, broker.buffer.aborted, broker.buffer.ongoing) == (0, 0, 2)
    assert broker.buffer.stats().state == "Ready"
    broker.ended(txn(9), commit=COMMIT)
    assert broker.visible() == [b"plain", b"committed", b"later"]
    broker.ended(txn(4), commit=ABORT)
    assert broker.visible() == [b"plain", b"committed", b"later", b"behind"]


async def test_the_store_forgets_what_is_over() -> None:
    broker = Buffered()
    first = broker.sent(b"a", of=txn(1))
    broker.sent(b"b", of=txn(1))
    broker.sent(b"c", of=txn(2))
    stored = broker.stored()
    assert stored.pop("snapshot").isdecimal()
    assert stored == {"0:1": f"{first}", "0:2": f"{first.ledger_id}:2"}
    broker.ended(txn(1), commit=COMMIT)
    broker.ended(txn(2), commit=ABORT)
    stored = broker.stored()
    del stored["snapshot"]
    assert stored == {"0:2": f"{first.ledger_id}:2 {first.ledger_id}:4"}
    broker.cluster.topics.delete(broker.topic.name, force=True)
    broker.finish()
    assert broker.stored() == {}


@pytest.mark.parametrize("late", [False, True])
async def test_trimming_forgets_transactions_that_were_aborted(late: bool) -> None:
    broker = Buffered(managedLedgerMaxEntriesPerLedger=2, managedLedgerMinLedgerRolloverTimeMinutes=0)
    broker.sent(b"a", of=txn(1))
    broker.ended(txn(1), commit=ABORT)
    broker.sent(b"b")
    if late:
        broker.sent(b"late", of=txn(1))
    broker.sent(b"c")
    ledger = broker.topic.ledger
    gone = list(ledger.ledgers.values())[:1]
    ledger.truncate(gone, broker.topic.ledgers_going)
    broker.finish()
    assert set(broker.stored()) == ({"snapshot", "0:1"} if late else {"snapshot"})
    broker.kill()
    assert broker.visible() == [b"b", b"c"]


@pytest.mark.parametrize(("commit", "seen"), [(COMMIT, [b"in", b"behind"]), (ABORT, [b"behind"])])
async def test_an_open_transaction_whose_first_entry_was_trimmed(commit: bool, seen: list[bytes]) -> None:
    """The messages of the transaction stay hidden until its end, also after a restart."""
    broker = Buffered(managedLedgerMaxEntriesPerLedger=2, managedLedgerMinLedgerRolloverTimeMinutes=0)
    broker.sent(b"gone")
    broker.sent(b"gone too", of=txn(1))
    broker.sent(b"in", of=txn(1))
    broker.sent(b"behind")
    ledger = broker.topic.ledger
    ledger.truncate(list(ledger.ledgers.values())[:1], broker.topic.ledgers_going)
    broker.finish()
    assert broker.visible() == []
    broker.kill()
    assert broker.visible() == []
    assert broker.topic.ledger.max_read == EARLIEST
    broker.ended(txn(1), commit=commit)
    assert broker.visible() == seen
    broker.kill()
    assert broker.visible() == seen
    assert set(broker.stored()) == ({"snapshot"} if commit else {"snapshot", "0:1"})


# indexes (PIP-415)


@pytest.mark.req("S415-43")
@pytest.mark.parametrize(("profile", "takes"), [("pip", 5), ("pulsar-4.2", 1)])
async def test_indexes_of_a_transactional_batch(profile: str, takes: int) -> None:
    broker = Buffered(profile=PROFILES[profile], brokerEntryMetadataInterceptors=INTERCEPTORS)
    broker.sent(b"old")
    broker.sent(*[b"x"] * 5, of=txn(1))
    broker.sent(b"plain")
    ledger = broker.topic.ledger
    assert index_of(ledger.read_now(ledger.last_confirmed)) == takes + 1


@pytest.mark.req("S415-24")
@pytest.mark.req("S415-25")
@pytest.mark.req("S415-42")
async def test_a_buffer_gives_indexes_to_markers_and_to_what_was_aborted() -> None:
    broker = Buffered(brokerEntryMetadataInterceptors=INTERCEPTORS)
    committed = broker.sent(b"a", b"b", of=txn(1))  # indexes 0 and 1
    broker.ended(txn(1), commit=COMMIT)  # index 2
    aborted = broker.sent(b"c", of=txn(2))  # index 3
    broker.ended(txn(2), commit=ABORT)  # index 4
    ledger = broker.topic.ledger

    def find(index: int, *, as_released: bool = False) -> Position | None:
        return read_through(find_index(ledger, index, as_released=as_released), ledger.read_now)

    assert [find(index) for index in range(5)] == [committed, committed, aborted, aborted, None]
    marker = Position(committed.ledger_id, 1)
    assert [find(index, as_released=True) for index in (2, 3, 4)] == [marker, aborted, ledger.last_confirmed]
    user = broker.sent(b"user")  # index 5
    assert [find(4), find(5)] == [user, user]


# transactions switched off


async def test_without_coordinator_there_is_no_buffer() -> None:
    broker = Buffered()
    broker.sent(b"in", of=txn(1))
    off = Buffered(broker.disk.left_behind(), enabled=False)
    assert off.topic.transactions is None
    with pytest.raises(NotAllowedError, match=r"^Transaction buffer disable!$"):
        off.publish(b"in", of=txn(1))


# terminated topics


@pytest.mark.parametrize(("commit", "seen"), [(COMMIT, [b"in", b"behind"]), (ABORT, [b"behind"])])
async def test_a_terminated_topic_gets_no_marker(commit: bool, seen: list[bytes]) -> None:
    broker = Buffered()
    broker.sent(b"in", of=txn(1))
    broker.sent(b"behind")
    broker.topic.terminate()
    broker.finish()
    broker.ended(txn(1), commit=commit)
    assert broker.topic.ledger.count == 2
    assert broker.visible() == seen
    broker.kill()
    assert broker.visible() == seen


async def test_a_low_watermark_of_ends_that_cannot_be_kept() -> None:
    """The first transaction is open again, so the end of the second one must not abort it."""
    disk = HeldStorage()
    broker = Buffered(disk)
    broker.sent(b"1", of=txn(1))
    broker.sent(b"2", of=txn(2))
    broker.topic.terminate()
    broker.finish()
    disk.holding = True
    broker.ended(txn(1), commit=COMMIT, low_watermark=0)
    broker.ended(txn(2), commit=COMMIT, low_watermark=1)
    disk.fail()
    disk.release()
    broker.ended(txn(2), commit=COMMIT, low_watermark=0)
    broker.ended(txn(1), commit=COMMIT, low_watermark=0)
    assert broker.visible() == [b"1", b"2"]
