"""Rules of scalable topics find the talks that break them, and accept the mended talks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pulsarium.capture.as_json import described
from pulsarium.capture.lint.checker import Checker
from pulsarium.capture.lint.scalable_rules import SCALABLE_RULES
from pulsarium.proto.generated import PulsarApi_pb2 as pb

from .scalable_talk import CHECKPOINT, HIGH, HIGH_KEY, KEY_SHARED, LOW, LOW_KEY, PARENT, SHARED, WHOLE, Scalable
from .talk import Talk

Plant = Callable[[Scalable, bool], None]
PLANTS: dict[str, Plant] = {}


def breaks(rule: str) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        PLANTS[rule] = plant
        return plant

    return register


@breaks("segment-without-layout")
def _(talk: Scalable, mended: bool) -> None:
    if mended:
        talk.whole()
    talk.open(WHOLE)


@breaks("key-in-wrong-segment")
def _(talk: Scalable, mended: bool) -> None:
    talk.halves()
    talk.open(LOW)
    talk.put(LOW_KEY if mended else HIGH_KEY)


@breaks("key-overtakes")
def _(talk: Scalable, mended: bool) -> None:
    talk.whole()
    talk.open(WHOLE)
    talk.put(LOW_KEY, receipt=mended)
    talk.split()
    talk.open(LOW, producer=2)
    talk.put(LOW_KEY, producer=2)


@breaks("producer-on-sealed-segment")
def _(talk: Scalable, mended: bool) -> None:
    talk.halves()
    talk.open(LOW if mended else WHOLE)


@breaks("segment-producer-name")
def _(talk: Scalable, mended: bool) -> None:
    talk.whole()
    talk.open(WHOLE, name="p-seg-0" if mended else "p")


@breaks("exclusive-attach-incomplete")
def _(talk: Scalable, mended: bool) -> None:
    talk.halves()
    for number, topic in enumerate([LOW, HIGH] if mended else [LOW]):
        talk.open(topic, producer=number, producer_access_mode=1)
    talk.put(LOW_KEY, producer=0)


@breaks("segment-not-assigned")
def _(talk: Scalable, mended: bool) -> None:
    talk.halves()
    talk.register(LOW)
    talk.attach(LOW if mended else HIGH)


@breaks("stream-attach-mode")
def _(talk: Scalable, mended: bool) -> None:
    talk.whole()
    talk.register(WHOLE, buckets=4)
    meta = pb.KeySharedMeta(keySharedMode=pb.STICKY, entryBucketDispatch=True)
    for number in range(4):
        meta.hashRanges.add(start=number, end=number)
    fields: dict[str, Any] = {"type": KEY_SHARED, "keySharedMeta": meta} if mended else {}
    talk.attach(WHOLE, **fields)


@breaks("stream-individual-ack")
def _(talk: Scalable, mended: bool) -> None:
    talk.whole()
    talk.register(WHOLE)
    talk.attach(WHOLE)
    talk.deliver(0)
    talk.ack(0, cumulative=mended)


@breaks("queue-misses-segments")
def _(talk: Scalable, mended: bool) -> None:
    talk.halves()
    for number, topic in enumerate([LOW, WHOLE, HIGH] if mended else [LOW, HIGH]):
        talk.attach(topic, consumer=number, type=SHARED)
    talk.deliver(0, consumer=0)
    talk.ack(0, consumer=0)


@breaks("checkpoint-with-cursor")
def _(talk: Scalable, mended: bool) -> None:
    talk.whole()
    talk.register(WHOLE, type=CHECKPOINT)
    talk.attach(WHOLE, durable=not mended)


@breaks("position-of-other-segment")
def _(talk: Scalable, mended: bool) -> None:
    talk.halves()
    talk.open(LOW)
    talk.put(LOW_KEY)
    start = pb.MessageIdData(ledgerId=1, entryId=0)
    talk.attach(LOW if mended else HIGH, durable=False, start_message_id=start)


@breaks("segment-schemas-differ")
def _(talk: Scalable, mended: bool) -> None:
    talk.halves()
    for number, topic in enumerate([LOW, HIGH]):
        text = b"" if mended or not number else b"{}"
        talk.open(topic, producer=number, schema=pb.Schema(name="x", type=pb.Schema.String, schema_data=text))


@breaks("scalable-name-attached")
def _(talk: Scalable, mended: bool) -> None:
    talk.whole()
    talk.open(WHOLE if mended else PARENT, name="p-seg-0")


@breaks("refused-lookup-repeated")
def _(talk: Scalable, mended: bool) -> None:
    for session in (1, 2 if mended else 1):
        talk.look_up(session)
        talk.broker("SCALABLE_TOPIC_UPDATE", session_id=session, error=pb.TopicNotFound, message="absent")


@breaks("session-id-in-use")
def _(talk: Scalable, mended: bool) -> None:
    talk.whole()
    if mended:
        talk.client("SCALABLE_TOPIC_CLOSE", session_id=1)
    talk.whole()


@breaks("registration-id-in-use")
def _(talk: Scalable, mended: bool) -> None:
    talk.whole()
    talk.register(WHOLE)
    talk.register(consumer=10 if mended else 9, name="d")


def broken(talk: Talk) -> list[str]:
    checker = Checker()
    return [each.rule.name for record in talk.records for each in checker.feed(record).violations]


def test_each_rule_of_scalable_topics_has_a_talk() -> None:
    assert PLANTS.keys() == {each.name for each in SCALABLE_RULES.rules}


@pytest.mark.parametrize("rule", PLANTS)
def test_a_talk_that_breaks_a_rule_is_found(rule: str) -> None:
    talk = Scalable()
    PLANTS[rule](talk, False)
    assert broken(talk) == [rule]


@pytest.mark.parametrize("rule", PLANTS)
def test_a_mended_talk_breaks_no_rule(rule: str) -> None:
    talk = Scalable()
    PLANTS[rule](talk, True)
    assert broken(talk) == []


def test_routing_follows_the_broker_that_the_client_talks_to() -> None:
    talk = Scalable()
    talk.records.pop()
    talk.broker(
        "CONNECTED",
        server_version="Pulsar Server5.0.0-M1",
        protocol_version=21,
        feature_flags=["supports_scalable_topics"],
    )
    talk.halves()
    talk.open(LOW)
    talk.put("key")  # 6a44 in M1, and e29c in 5.0
    assert broken(talk) == []


def test_an_assignment_that_is_pushed_takes_the_place_of_the_answer() -> None:
    talk = Scalable()
    talk.halves()
    talk.register(LOW)
    talk.assign(HIGH)
    talk.attach(HIGH)
    assert broken(talk) == []


def test_layouts_and_assignments_are_shown_as_json_with_their_latency() -> None:
    talk = Scalable()
    talk.whole()
    talk.register(WHOLE)
    talk.assign(WHOLE)
    talk.client("SCALABLE_TOPIC_UNSUBSCRIBE", request_id=900, consumer_id=9)
    talk.broker("SUCCESS", request_id=900)
    checker = Checker()
    seen = [described(number, record, checker.feed(record)) for number, record in enumerate(talk.records)]
    told = {each["command"]: each for each in seen if "command" in each}
    assert told["SCALABLE_TOPIC_UPDATE"]["fields"]["dag"]["segments"][0]["state"] == "ACTIVE"
    assert told["SCALABLE_TOPIC_UPDATE"]["latency_us"] == told["SUCCESS"]["latency_us"] == 1000
    assert told["SCALABLE_TOPIC_SUBSCRIBE_RESPONSE"]["topic"] == PARENT
    assert told["SCALABLE_TOPIC_ASSIGNMENT_UPDATE"]["fields"]["assignment"]["segments"][0]["segment_topic"] == WHOLE
