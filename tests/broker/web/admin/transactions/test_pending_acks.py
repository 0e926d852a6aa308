"""Acknowledgements of open transactions over REST."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.cursor.pending_acks import PendingAcks
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.message_id import TxnId
from tests.broker.web.admin.rest import Rest
from tests.broker.wire import TOPIC, Bed, Cumulative, Earliest, Shared, Wire, batch_of, message_id, plain

BASE = "/admin/v3/transactions"
SUB = "public/default/t/sub"
IN_TXN = {"txnid_most_bits": 0, "txnid_least_bits": 7}


pytestmark = pytest.mark.serving(Config(transactionCoordinatorEnabled=True))


@pytest.fixture
async def wire(bed: Bed) -> Wire:
    wire = await bed.connect()
    await wire.producer()
    return wire


def pending(bed: Bed) -> PendingAcks:
    found = bed.subscription().pending_acks
    assert found is not None
    return found


async def state(rest: Rest, position: Position, query: str = "") -> Any:
    path = f"{SUB}/{position.ledger_id}/{position.entry_id}{query}"
    return (await rest.get(f"{BASE}/positionStatsInPendingAck/{path}"))["state"]


async def test_individual_acknowledgements_are_pending_until_the_end(bed: Bed, rest: Rest, wire: Wire) -> None:
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    sent = await wire.publish(plain(b"0"), batch_of(b"x", b"y", b"z"), plain(b"2"))
    nothing = {"state": "None", "ongoingTxnSize": 0, "recoverStartTime": 0, "recoverEndTime": 0}
    assert await rest.get(f"{BASE}/pendingAckStats/{SUB}") == nothing
    assert await state(rest, sent[0]) == "PendingAckNotReady"
    refused = await rest.refused("GET", f"{BASE}/pendingAckInternalStats/{SUB}")
    assert refused == (503, "Pending ack have not init success!")
    await wire.flow()
    await wire.messages(3)
    part = message_id(sent[1], ack_set=[0b110], batch_size=3)
    await wire.ack(message_id=[message_id(sent[0]), part], **IN_TXN)
    stats = await rest.get(f"{BASE}/pendingAckStats/{SUB}?lowWaterMarks=true")
    began = stats["recoverStartTime"]
    assert stats == {
        "state": "Ready",
        "lowWaterMarks": {},
        "ongoingTxnSize": 1,
        "recoverStartTime": began,
        "recoverEndTime": began,
    }
    assert await state(rest, sent[0]) == "PendingAck"
    assert await state(rest, sent[1]) == "PendingAck"
    indexes = {index: await state(rest, sent[1], f"?batchIndex={index}") for index in range(4)}
    assert indexes == {0: "PendingAck", 1: "NotInPendingAck", 2: "NotInPendingAck", 3: "InvalidPosition"}
    assert await state(rest, sent[2]) == "NotInPendingAck"
    assert await rest.get(f"{BASE}/transactionInPendingAckStats/{SUB}/0/7") == {}
    pending(bed).end(TxnId(0, 7), commit=True, low_watermark=6)
    bed.broker.turn.finish()
    assert await state(rest, sent[0]) == "MarkDelete"
    assert await state(rest, sent[1]) == "NotInPendingAck"
    stats = await rest.get(f"{BASE}/pendingAckStats/{SUB}?lowWaterMarks=true")
    assert (stats["ongoingTxnSize"], stats["lowWaterMarks"]) == (0, {"0": 6})
    log = (await rest.get(f"{BASE}/pendingAckInternalStats/{SUB}"))["pendingAckLogStats"]
    assert log["managedLedgerName"] == "public/default/persistent/t-sub__transaction_pending_ack"
    assert log["managedLedgerInternalStats"]["entriesAddedCounter"] == 1


async def test_a_cumulative_acknowledgement_is_pending_at_its_position(rest: Rest, wire: Wire) -> None:
    await wire.subscribe(initialPosition=Earliest)
    sent = await wire.publish(plain(b"0"), batch_of(b"x", b"y", b"z"))
    await wire.ack(sent[0], type=Cumulative, **IN_TXN)
    url = f"{BASE}/transactionInPendingAckStats/{SUB}/0/7"
    assert await rest.get(url) == {"cumulativeAckPosition": str(sent[0])}
    part = message_id(sent[1], ack_set=[0b100], batch_size=3)
    await wire.ack(message_id=[part], type=Cumulative, **IN_TXN)
    assert await rest.get(url) == {"cumulativeAckPosition": f"{sent[1]}:1"}
    assert await rest.get(f"{BASE}/transactionInPendingAckStats/{SUB}/0/8") == {}
    assert (await rest.get(f"{BASE}/pendingAckStats/{SUB}"))["ongoingTxnSize"] == 0


async def test_absent_topics_and_subscriptions_have_no_pending_acks(rest: Rest, wire: Wire) -> None:
    routes = {"pendingAckStats": "", "transactionInPendingAckStats": "/0/0", "positionStatsInPendingAck": "/0/0"}
    for route, more in routes.items():
        absent = f"Subscription absent not found for topic {TOPIC}"
        assert await rest.refused("GET", f"{BASE}/{route}/public/default/t/absent{more}") == (404, absent)
        answer = await rest.refused("GET", f"{BASE}/{route}/public/default/absent/sub{more}")
        assert answer == (404, "Topic not found persistent://public/default/absent")
    absent = f"{TOPIC} not found subscription : absent"
    answer = await rest.refused("GET", f"{BASE}/pendingAckInternalStats/public/default/t/absent")
    assert answer == (404, absent)
