"""Transaction buffers over REST, in the answers of a real broker."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.message_id import TxnId
from tests.broker.model.transaction.buffered import in_txn, txn
from tests.broker.web.admin.rest import NON_PERSISTENT, TOPICS, Rest
from tests.broker.wire import Bed, Type, Wire, plain, position_of

TRANSACTIONS = "/admin/v3/transactions"
BUFFER = f"{TRANSACTIONS}/transactionBufferStats/public/default/t"
IN_BUFFER = f"{TRANSACTIONS}/transactionInBufferStats/public/default/t"


pytestmark = pytest.mark.serving(Config(transactionCoordinatorEnabled=True))


async def send(wire: Wire, of: TxnId, payload: bytes) -> Position:
    await wire.send(Type.SEND, plain(payload, **in_txn(of)), producer_id=0, sequence_id=7, **in_txn(of))
    return position_of((await wire.expect(Type.SEND_RECEIPT)).message_id)


async def end(bed: Bed, sender: Wire, of: TxnId, *, commit: bool, low_watermark: int = -1) -> None:
    buffer = bed.topic().transactions
    assert buffer is not None
    buffer.end(of, commit=commit, low_watermark=low_watermark)
    await sender.alive()


async def stats(rest: Rest) -> dict[str, Any]:
    found: dict[str, Any] = (await rest.call("GET", BUFFER)).json
    assert 0 < found["recoverStartTime"] <= found["recoverEndTime"]
    return {key: value for key, value in found.items() if not key.startswith("recover")}


async def test_stats_of_a_buffer_follow_its_transactions(bed: Bed, rest: Rest, sender: Wire) -> None:
    (plainly,) = await sender.publish(plain(b"plain"))
    unused = {
        "state": "NoSnapshot",
        "maxReadPosition": str(plainly),
        "lastSnapshotTimestamps": 0,
        "ongoingTxnSize": 0,
        "totalAbortedTransactions": 0,
        "snapshotType": "Single",
    }
    assert await stats(rest) == unused
    first = await send(sender, txn(0), b"in")
    begun = await stats(rest)
    assert begun.pop("lastSnapshotTimestamps") > 0
    used = {**unused, "state": "Ready"}
    del used["lastSnapshotTimestamps"]
    assert begun == {**used, "ongoingTxnSize": 1}
    await end(bed, sender, txn(0), commit=False)
    ended = await stats(rest)
    del ended["lastSnapshotTimestamps"]
    marker = Position(first.ledger_id, first.entry_id + 1)
    assert ended == {**used, "maxReadPosition": str(marker), "totalAbortedTransactions": 1}


async def test_low_watermarks_are_shown_when_asked_for(bed: Bed, rest: Rest, sender: Wire) -> None:
    with_marks = f"{BUFFER}?lowWaterMarks=true&segmentStats=true"
    assert (await rest.call("GET", with_marks)).json["lowWaterMarks"] == {}
    await end(bed, sender, txn(5, most=2), commit=True, low_watermark=4)
    assert (await rest.call("GET", with_marks)).json["lowWaterMarks"] == {"2": 4}


async def test_a_transaction_in_the_buffer_shows_where_it_starts_and_how_it_ended(
    bed: Bed, rest: Rest, sender: Wire
) -> None:
    first = await send(sender, txn(1), b"in")
    await send(sender, txn(1), b"in")
    await send(sender, txn(2), b"in")
    assert (await rest.call("GET", f"{IN_BUFFER}/0/1")).json == {"startPosition": str(first), "aborted": False}
    await end(bed, sender, txn(1), commit=True)
    await end(bed, sender, txn(2), commit=False)
    assert (await rest.call("GET", f"{IN_BUFFER}/0/1")).json == {"aborted": False}
    assert (await rest.call("GET", f"{IN_BUFFER}/0/2")).json == {"aborted": True}
    assert (await rest.call("GET", f"{IN_BUFFER}/x/2")).status == 404


async def test_counts_in_the_stats_of_topics(bed: Bed, rest: Rest, sender: Wire) -> None:
    for least, commit in ((1, True), (2, True), (3, False)):
        await send(sender, txn(least), b"in")
        await end(bed, sender, txn(least), commit=commit)
    await send(sender, txn(4), b"in")
    found = (await rest.call("GET", f"{TOPICS}/t/stats")).json
    assert [found[f"{state}TxnCount"] for state in ("ongoing", "aborted", "committed")] == [1, 1, 2]
    other = await bed.connect()
    await other.producer("non-persistent://public/default/n")
    assert (await rest.call("GET", f"{NON_PERSISTENT}/n/stats")).json["ongoingTxnCount"] == 0


async def test_looking_at_messages_says_what_became_of_them(bed: Bed, rest: Rest, sender: Wire) -> None:
    """Clients filter out messages that are aborted or uncommitted."""
    aborted = await send(sender, txn(1), b"aborted")
    await end(bed, sender, txn(1), commit=False)
    committed = await send(sender, txn(2), b"committed")
    await end(bed, sender, txn(2), commit=True)
    (plainly,) = await sender.publish(plain(b"plain"))
    still_open = await send(sender, txn(3), b"open")
    (behind,) = await sender.publish(plain(b"behind"))

    async def told(position: Position) -> tuple[str | None, str]:
        headers = (await rest.call("GET", f"{TOPICS}/t/ledger/{position.ledger_id}/entry/{position.entry_id}")).headers
        lower = {name.lower(): text for name, text in headers.items()}
        return lower.get("x-pulsar-txn-aborted"), lower["x-pulsar-txn-uncommitted"]

    assert [await told(each) for each in (aborted, committed, plainly, still_open, behind)] == [
        ("true", "false"),
        ("false", "false"),
        (None, "false"),
        ("false", "true"),
        (None, "true"),
    ]
