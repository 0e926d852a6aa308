"""The wish that a subscription be replicated."""

from __future__ import annotations

from tests.broker.admin.rest import NON_PERSISTENT, TOPICS, Rest
from tests.broker.wire import TOPIC, Wire

STATUS = "subscription/s/replicatedSubscriptionStatus"


async def test_it_is_set_and_shown(rest: Rest, wire: Wire) -> None:
    await wire.subscribe(name="s")
    for replicated in (True, False):
        await rest.done("POST", f"{TOPICS}/t/{STATUS}", replicated)
        assert await rest.get(f"{TOPICS}/t/{STATUS}") == {TOPIC: replicated}
        stats = (await rest.get(f"{TOPICS}/t/stats"))["subscriptions"]["s"]
        assert stats["replicated"] == stats["isReplicated"] == replicated


async def test_each_partition_has_its_own(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t/partitions", 2)
    await rest.done("PUT", f"{TOPICS}/t/subscription/s")
    await rest.done("POST", f"{TOPICS}/t-partition-1/{STATUS}", True)
    shown = {f"{TOPIC}-partition-0": False, f"{TOPIC}-partition-1": True}
    assert await rest.get(f"{TOPICS}/t/{STATUS}") == shown
    await rest.done("POST", f"{TOPICS}/t/{STATUS}", True)
    assert await rest.get(f"{TOPICS}/t/{STATUS}") == dict.fromkeys(shown, True)


async def test_what_it_is_refused_for(rest: Rest, wire: Wire) -> None:
    absent = (404, f"Topic {TOPIC} not found")
    assert await rest.refused("GET", f"{TOPICS}/t/{STATUS}") == absent
    assert await rest.refused("POST", f"{TOPICS}/t/{STATUS}", True) == absent
    await rest.done("PUT", f"{TOPICS}/t")
    absent = (404, f"Subscription s not found for topic {TOPIC}")
    assert await rest.refused("GET", f"{TOPICS}/t/{STATUS}") == absent
    assert await rest.refused("POST", f"{TOPICS}/t/{STATUS}", False) == absent
    answer = await rest.call("POST", f"{TOPICS}/t/{STATUS}", "x")
    assert (answer.status, answer.body.startswith(b"Cannot deserialize value of type `boolean`")) == (400, True)
    loose = "replicated subscriptions on non-persistent topics"
    assert await rest.refused("GET", f"{NON_PERSISTENT}/t/{STATUS}") == (405, f"Cannot get {loose}")
    assert await rest.refused("POST", f"{NON_PERSISTENT}/t/{STATUS}", True) == (405, f"Cannot enable/disable {loose}")
