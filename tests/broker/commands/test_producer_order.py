"""Order of the checks of PRODUCER: of several errors, the client gets the first one in the order of P-01."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.auth.secured import by_token
from tests.broker.commands.authorized import connecting, grant
from tests.broker.commands.limits import NO_MORE_PRODUCERS, namespace_says
from tests.broker.commands.refusals import JAVA, refused_producer
from tests.broker.commands.schema import AVRO, ONE, REFUSED, STRING, schema
from tests.broker.wire import TOPIC, Bed, Wire, plain

NO_GRANT = (pb.AuthorizationError, "Client is not authorized to Produce")


@pytest.mark.req("P-01")
@pytest.mark.serving(by_token(allowAutoTopicCreation=False))
async def test_the_name_comes_first_then_the_grants_then_the_id_then_the_topic(bed: Bed) -> None:
    bed.broker.topics.create(TopicName.parse(TOPIC))
    bed.broker.metadata.put_namespace("public/closed", dict(bed.broker.metadata.namespaces["public/default"]))
    grant(bed, "me", "produce")
    wire = await bed.connect(**connecting("me"))
    await wire.producer(producer_name="first")
    absent: dict[str, Any] = {"topic": f"{TOPIC}-absent", "initial_subscription_name": "s"}
    assert (await refused_producer(wire, 0, topic="persistent://public/closed"))[0] == pb.InvalidTopicName
    assert await refused_producer(wire, 0, topic="persistent://public/closed/t") == NO_GRANT
    assert await refused_producer(wire, 0, **absent) == NO_GRANT
    grant(bed, "me", "produce", "consume")
    assert (await wire.producer(**absent, producer_id=0)).producer_name == "first"
    assert (await refused_producer(wire, 1, **absent))[0] == pb.TopicNotFound


@pytest.mark.req("P-01")
async def test_limits_of_a_topic_come_before_the_schema_and_the_initial_subscription(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="taken", schema=schema(AVRO, ONE), encrypted=True)
    await wire.subscribe(name="late")
    await wire.publish(plain(b"backlog"))
    topic = bed.broker.topics.find(TopicName.parse(TOPIC))
    namespace_says(
        bed,
        max_producers_per_topic=1,
        backlog_quota_map={"destination_storage": {"limitSize": 0, "limitTime": -1, "policy": "producer_exception"}},
        encryption_required=True,
        autoSubscriptionCreationOverride={"allowAutoSubscriptionCreation": False},
    )
    wrong: dict[str, Any] = {
        "producer_name": "taken",
        "schema": schema(STRING),
        "initial_subscription_name": "initial",
    }
    assert await refused_producer(wire, 1, **wrong) == NO_MORE_PRODUCERS
    namespace_says(bed, max_producers_per_topic=0)
    assert (await refused_producer(wire, 1, **wrong))[0] == pb.ProducerBlockedQuotaExceededException
    namespace_says(bed, backlog_quota_map={})
    assert await refused_producer(wire, 1, **wrong) == (pb.MetadataError, f"Encryption is required in {TOPIC}")
    wrong["encrypted"] = True
    code, text = await refused_producer(wire, 1, **wrong)
    assert (code, text.startswith(REFUSED)) == (pb.IncompatibleSchema, True)
    wrong["schema"] = schema(AVRO, ONE)
    code, text = await refused_producer(wire, 1, **wrong)
    assert (code, "initial subscription" in text) == (pb.NotAllowedError, True)
    assert list(topic.subscriptions) == ["late"]
    namespace_says(bed, autoSubscriptionCreationOverride={"allowAutoSubscriptionCreation": True})
    code, text = await refused_producer(wire, 1, **wrong)
    assert (code, text.startswith(f"{JAVA}NamingException")) == (pb.ProducerBusy, True)
    assert list(topic.subscriptions) == ["late", "initial"]  # created before the check of the producer's name
