"""/admin/v2: offloading, of which there is none."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import PULSAR_4_2
from tests.broker.admin.rest import NAMESPACES, NON_PERSISTENT, TOPICS, Rest, rest_of
from tests.broker.admin.steps import Reason, Step, play
from tests.broker.wire import serving

NOT_RUN = {
    "status": "NOT_RUN",
    "lastError": "",
    "firstUnoffloadedMessage": {"ledgerId": -1, "entryId": -1, "partitionIndex": -1, "batchIndex": -1, "batchSize": 0},
}
FAILED = {
    "status": "ERROR",
    "lastError": "org.apache.bookkeeper.mledger.ManagedLedgerException: [NullLedgerOffloader] does not support offload",
}
NO_MESSAGE = {"reason": "messageId is null"}


async def test_of_a_persistent_topic(rest: Rest) -> None:
    url = f"{TOPICS}/t/offload"
    await rest.done("PUT", f"{TOPICS}/t")
    await play(
        rest,
        Step(f"GET {url}", 200, NOT_RUN),
        Step(f"PUT {url}", 204, value={"ledgerId": 0, "entryId": 5}),
        Step(f"PUT {url}", 400, NO_MESSAGE),
        Step(f"GET {url}", 200, NOT_RUN | FAILED),
    )


@pytest.mark.parametrize("topics", [TOPICS, NON_PERSISTENT])
async def test_of_topics_that_there_are_not(rest: Rest, topics: str) -> None:
    await rest.done("PUT", f"{topics}/p/partitions", 1)
    for local in ("absent", "p"):
        url = f"{topics}/{local}/offload"
        absent = {"reason": f"Topic {topics.split('/')[3]}://public/default/{local} not found"}
        await play(
            rest, Step(f"GET {url}", 404, absent), Step(f"PUT {url}", 404, absent, {"ledgerId": 0, "entryId": 0})
        )


async def test_of_a_non_persistent_topic() -> None:
    url = f"{NON_PERSISTENT}/t/offload"
    async with serving(profile=PULSAR_4_2) as bed:
        rest = rest_of(bed)
        await rest.done("PUT", f"{NON_PERSISTENT}/t")
        fault = Reason("\n --- An unexpected error occurred in the server ---\n\nMessage: class org.apache.pulsar")
        await play(
            rest,
            Step(f"GET {url}", 500, fault),
            Step(f"PUT {url}", 500, fault, {"ledgerId": 0, "entryId": 0}),
            Step(f"PUT {url}", 400, NO_MESSAGE),
        )
        scanned = await rest.call("GET", f"{NAMESPACES}/public/default/scanOffloadedLedgers")
        assert (scanned.status, scanned.json["message"]) == (500, "Request failed.")
