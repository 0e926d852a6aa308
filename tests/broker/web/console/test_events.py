"""The latest events of a cluster."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.faults.actions import Drop
from pulsarium.broker.web.console.events import LONG_MOMENT, MOMENT
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, TOPICS, Rest
from tests.broker.wire import TOPIC, Bed, Earliest, Shared, Type, Wire, plain

NAME = "public/default/t"


async def events(rest: Rest, kind: str) -> list[dict[str, Any]]:
    """Return the events of a kind, the newest first."""
    return [each for each in (await rest.get("/pulsarium/overview"))["events"] if each["kind"] == kind]


async def texts(rest: Rest, kind: str) -> list[str]:
    return [each["text"] for each in await events(rest, kind)]


async def pass_by() -> None:
    """Let a moment pass, so that the next event is a new one."""
    await trio.sleep(MOMENT + 1)


async def test_an_event_says_when_it_was_and_what_it_is_about(rest: Rest, wire: Wire, bed: Bed) -> None:
    await wire.subscribe()
    (event,) = await events(rest, "subscriptionCreated")
    assert event == {
        "number": event["number"],
        "ms": event["ms"],
        "kind": "subscriptionCreated",
        "text": f"Subscription sub of {NAME} was created",
        "topic": TOPIC,
        "subscription": "sub",
    }
    assert bed.broker.clock.now_ms() - event["ms"] < 60_000


async def test_a_topic_that_a_caller_deletes_names_the_caller(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    assert await texts(rest, "topicCreated") == [f"Topic {NAME} was created"]
    await rest.call("DELETE", f"{TOPICS}/t", x_pulsarium_by="console")
    assert await texts(rest, "topicDeleted") == [f"Topic {NAME} was deleted, by a person in the console"]


async def test_a_topic_that_nobody_uses_says_so_when_it_goes(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await bed.broker.cluster.attached(Lab).clock.advance(200)
    assert await texts(rest, "topicDeleted") == [f"Topic {NAME} was deleted: nobody used it for 60 s"]


@pytest.mark.serving(Config(subscriptionExpirationTimeMinutes=5, brokerDeleteInactiveTopicsEnabled=False))
async def test_a_subscription_that_nobody_uses_says_so_when_it_goes(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    bed.topic().subscribe("sub", earliest=True)
    await bed.broker.cluster.attached(Lab).clock.advance(20 * 60)
    text = f"Subscription sub of {NAME} was deleted: nobody used it for 5 minutes"
    assert await texts(rest, "subscriptionDeleted") == [text]


async def test_some_topics_of_a_moment_are_named_and_many_are_counted(rest: Rest) -> None:
    for name in ("a", "b"):
        await rest.done("PUT", f"{TOPICS}/{name}")
    assert await texts(rest, "topicCreated") == ["Topics public/default/a and public/default/b were created"]
    for number in range(38):
        await rest.done("PUT", f"{TOPICS}/{number}")
    assert await texts(rest, "topicCreated") == ["40 topics were created in public/default"]
    await pass_by()
    await rest.done("PUT", f"{TOPICS}/later")
    assert len(await texts(rest, "topicCreated")) == 2


async def test_the_partitions_of_a_topic_are_one_event(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", 3)
    (event,) = await events(rest, "topicCreated")
    assert (event["text"], event["topic"]) == (
        "Topic public/default/p was created (3 parts)",
        "persistent://public/default/p",
    )


async def test_system_topics_are_no_news(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await pass_by()
    await rest.done("POST", f"{TOPICS}/t/retention", {"retentionTimeInMinutes": 5, "retentionSizeInMB": 5})
    assert await texts(rest, "topicCreated") == [f"Topic {NAME} was created"]


async def test_clients_join_and_leave(rest: Rest, bed: Bed) -> None:
    wire = await bed.connect(client_version="Pulsar-Test-v1")
    (joined,) = await events(rest, "clientJoined")
    assert (joined["text"], joined["client"]) == ("Pulsar-Test-v1 at /test:1 joined", "/test:1")
    await wire.aclose()
    await trio.sleep(0.1)
    assert await texts(rest, "clientLeft") == ["Pulsar-Test-v1 at /test:1 left"]


async def test_a_client_that_the_broker_disconnects_leaves_with_the_reason(rest: Rest, wire: Wire) -> None:
    await wire.send(Type.ACK, consumer_id=0, ack_type=0)
    await wire.write(b"\x00\x00\x00\x01\xff")
    await wire.closed()
    (text,) = await texts(rest, "clientLeft")
    assert text.startswith("wire at /test:1 left: ")


async def test_many_clients_of_a_moment_are_counted(rest: Rest, bed: Bed) -> None:
    for _ in range(5):
        await bed.connect()
    (event,) = await events(rest, "clientJoined")
    assert event["text"] == "5 clients joined"
    assert "client" not in event


async def test_a_changed_policy_of_a_namespace_is_named(rest: Rest) -> None:
    await rest.done("POST", f"{NAMESPACES}/public/default/messageTTL", 60)
    assert await texts(rest, "policyChanged") == ["The policy messageTTL of public/default was changed, over REST"]
    await rest.done("POST", f"{NAMESPACES}/public/default/messageTTL", 60)
    assert len(await texts(rest, "policyChanged")) == 1


async def test_a_changed_policy_of_a_topic_is_named(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await rest.call("POST", f"{TOPICS}/t/maxProducers", 3, x_pulsarium_by="test")
    (event,) = await events(rest, "policyChanged")
    assert (event["text"], event["topic"]) == (f"The policy maxProducers of {NAME} was changed, by a test", TOPIC)


async def test_the_hits_of_a_fault_are_counted(rest: Rest, sender: Wire, bed: Bed) -> None:
    bed.broker.cluster.attached(Lab).faults.add(Drop(), "SEND", topic="*", count=None)
    await sender.write(sender.sends(plain(b"1")))
    await sender.alive()
    assert await texts(rest, "faultHit") == ["Fault 1 (drop SEND of *) hit SEND of /test:1"]
    await sender.write(sender.sends(plain(b"2"), plain(b"3")))
    await sender.alive()
    assert await texts(rest, "faultHit") == ["Fault 1 (drop SEND of *) hit 3 frames"]


async def test_an_act_on_the_lab_is_news(rest: Rest) -> None:
    await rest.call("POST", "/lab/clock/freeze", x_pulsarium_by="console")
    assert await texts(rest, "labAct") == ["The lab froze the clock, by a person in the console"]


async def test_a_message_that_comes_again_and_again_is_found(rest: Rest, sender: Wire) -> None:
    await sender.subscribe(type=Shared, initialPosition=Earliest)
    (position,) = await sender.publish(plain(b"x"))
    await sender.flow()
    for _ in range(4):
        await sender.message()
        await sender.redeliver([position])
    await sender.message()
    assert await events(rest, "loopFound") == []
    await sender.redeliver([position])
    await sender.message()
    (event,) = await events(rest, "loopFound")
    assert event["text"] == f"Message {position} of {NAME} comes again and again on sub"
    assert (event["topic"], event["subscription"]) == (TOPIC, "sub")


async def test_a_backlog_beyond_its_quota_is_news(rest: Rest, sender: Wire, bed: Bed) -> None:
    await sender.subscribe(type=Shared)
    quota = {"limitSize": 1, "limitTime": -1, "policy": "producer_exception"}
    await rest.done("POST", f"{NAMESPACES}/public/default/backlogQuota", quota)
    await sender.publish(plain(b"x"))
    await bed.broker.cluster.attached(Lab).clock.advance(61)
    (event,) = await events(rest, "quotaExceeded")
    assert event["topic"] == TOPIC
    assert event["text"] == (f"The backlog quota (destination_storage) of {NAME} is exceeded: producer_exception")


async def test_a_producer_that_a_quota_refuses_is_news(rest: Rest, sender: Wire, bed: Bed) -> None:
    await sender.subscribe(type=Shared)
    quota = {"limitSize": 1, "limitTime": -1, "policy": "producer_exception"}
    await rest.done("POST", f"{NAMESPACES}/public/default/backlogQuota", quota)
    await sender.publish(plain(b"x"))
    await sender.refused(Type.PRODUCER, topic=TOPIC, producer_id=1)
    await sender.refused(Type.PRODUCER, topic=TOPIC, producer_id=1)
    (event,) = await events(rest, "quotaExceeded")
    assert event["topic"] == TOPIC


async def test_a_full_disk_is_one_event_for_a_while(
    rest: Rest, sender: Wire, bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(bed.broker.cluster.storage), "refusal", "The disk is almost full")
    for _ in range(2):
        await sender.refused(Type.PRODUCER, topic=TOPIC, producer_id=1)
    assert await texts(rest, "storageFull") == ["The disk is almost full"]
    bed.broker.clock.machine.jump(LONG_MOMENT + 1)
    await sender.refused(Type.PRODUCER, topic=TOPIC, producer_id=1)
    assert len(await texts(rest, "storageFull")) == 2


async def test_an_unloaded_topic_is_news(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await rest.done("PUT", f"{TOPICS}/t/unload")
    assert await texts(rest, "unloaded") == [f"Topic {NAME} was unloaded"]


async def test_a_new_version_of_a_schema_is_news(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    schema = {"type": "STRING", "schema": "", "properties": {}}
    await rest.call("POST", f"{ADMIN}/schemas/public/default/t/schema", schema)
    assert await texts(rest, "schemaChanged") == [f"{NAME} has version 0 of its schema: STRING"]
    await pass_by()
    await rest.call("DELETE", f"{ADMIN}/schemas/public/default/t/schema")
    assert (await texts(rest, "schemaChanged"))[0] == f"The schema of {NAME} was deleted"


async def test_a_stopped_site_listens_no_more(rest: Rest) -> None:
    rest.site.stop()
    await rest.done("PUT", f"{TOPICS}/t")
    assert await events(rest, "topicCreated") == []
