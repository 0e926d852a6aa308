"""Termination of topics over REST."""

from __future__ import annotations

import pytest

from tests.broker.admin.rest import TOPICS, Rest
from tests.broker.wire import TOPIC, Type, Wire, plain


@pytest.mark.req("B-33")
async def test_a_topic_is_terminated(rest: Rest, sender: Wire) -> None:
    positions = await sender.publish(plain(b"a"), plain(b"b"))
    expected = {"ledgerId": positions[1].ledger_id, "entryId": 1, "partitionIndex": -1}
    for _ in range(2):
        answer = await rest.call("POST", f"{TOPICS}/t/terminate")
        assert (answer.status, answer.json) == (200, expected | {"batchSize": 0, "batchIndex": -1})
    await sender.expect(Type.CLOSE_PRODUCER)
    assert (await rest.get(f"{TOPICS}/t/internalStats"))["state"] == "Terminated"
    await rest.done("DELETE", f"{TOPICS}/t")
    await sender.producer(producer_id=1)  # creates a new topic of the same name


@pytest.mark.req("B-33")
async def test_every_partition_is_terminated(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{TOPICS}/t/partitions", 2)
    await wire.producer(f"{TOPIC}-partition-1")
    (position,) = await wire.publish(plain(b"m"))
    answer = await rest.call("POST", f"{TOPICS}/t/terminate/partitions")
    assert answer.status == 200
    assert {number: last["entryId"] for number, last in answer.json.items()} == {"0": -1, "1": 0}
    assert answer.json["1"]["ledgerId"] == position.ledger_id
    assert {last["partitionIndex"] for last in answer.json.values()} == {-1}
    await wire.expect(Type.CLOSE_PRODUCER)
    assert (await rest.call("POST", f"{TOPICS}/t/terminate/partitions")).json == answer.json
