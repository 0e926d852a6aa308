"""/topics: messages over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from pulsarium.broker.config import PULSAR_4_2
from pulsarium.proto.entry import messages_in, parse_metadata, payload_of
from pulsarium.proto.topic_name import TopicName
from tests.broker.web.admin.rest import NAMESPACES, NON_PERSISTENT, TOPICS, Rest, rest_of
from tests.broker.web.admin.steps import Reason, Step, Text, play
from tests.broker.wire import Bed, Wire, serving

NAME = "persistent://public/default/t"
URL = "/topics/persistent/public/default/t"
STRING = json.dumps({"name": "String", "schema": "", "type": "STRING", "timestamp": 0, "properties": {}})
MESSAGES = [
    {"key": "k1", "payload": "hello 1", "eventTime": 1603045262772, "sequenceId": 1},
    {"key": "k2", "payload": "hello 2", "properties": {"a": "b"}, "eventTime": "1603045262772", "sequenceId": 2},
]
KEYED = {"schemaVersion": -1, "producerName": "p", "keySchema": STRING, "valueSchema": STRING, "messages": MESSAGES}
PLAIN = {"messages": [{"payload": "x"}]}
NOT_OWNED = "org.apache.pulsar.broker.service.BrokerServiceException$TopicNotFoundException: Topic not owned by current"


async def produced(rest: Rest, url: str, value: Any) -> list[str]:
    """Publish messages over HTTP, expect that all succeed, and return their ids."""
    answer = await rest.call("POST", url, value)
    assert answer.status == 200, answer
    assert {result["errorCode"] for result in answer.json["messagePublishResults"]} <= {0}, answer
    return [result["messageId"] for result in answer.json["messagePublishResults"]]


async def test_messages_sent_over_http_arrive(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await wire.subscribe()
    await wire.flow()
    ids = await produced(rest, URL, PLAIN | {"producerName": "p"})
    ids += await produced(rest, URL, PLAIN)
    first, second = await wire.messages(2)
    assert ids == [f"{each.position.ledger_id}:{each.position.entry_id}:-1" for each in (first, second)]
    assert first.payload == b"x"
    metadata = parse_metadata(first.entry)
    assert (metadata.producer_name, metadata.sequence_id, messages_in(first.entry)) == ("p", 0, 1)
    assert parse_metadata(second.entry).producer_name == "RestProducer"
    assert metadata.schema_version == bytes(8)


async def test_a_message_carries_its_metadata(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    (where,) = await produced(
        rest,
        URL,
        {
            "messages": [
                MESSAGES[1]
                | {"deliverAfterMs": 5, "replicationClusters": ["standalone"], "disableReplication": False, "other": 1}
            ]
        },
    )
    topic = bed.topic(NAME)
    assert topic.messages_in == 1
    entry = (await rest.call("GET", f"{TOPICS}/t/ledger/{where.split(':')[0]}/entry/0", accept="*/*")).body
    assert entry == b"hello 2"
    stored = topic.ledger.read_now(topic.ledger.last_confirmed)
    metadata = parse_metadata(stored)
    assert payload_of(stored) == b"hello 2"
    assert metadata.partition_key == "k2"
    assert not metadata.partition_key_b64_encoded
    assert (metadata.event_time, metadata.deliver_at_time) == (1603045262772, 1603045262777)
    assert {pair.key: pair.value for pair in metadata.properties} == {"a": "b"}
    assert list(metadata.replicate_to) == ["standalone"]


async def test_keys_with_a_schema_are_separate(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await produced(rest, URL, KEYED)
    topic = bed.topic(NAME)
    metadata = parse_metadata(topic.ledger.read_now(topic.ledger.last_confirmed))
    assert (metadata.partition_key, metadata.partition_key_b64_encoded) == ("azI=", True)
    schema = bed.broker.schemas.latest(TopicName.parse(NAME))
    assert schema is not None
    assert schema.schema.properties["kv.encoding.type"] == "SEPARATED"


async def test_messages_go_to_partitions_in_turn_or_to_one(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t/partitions", 2)
    assert [each.rpartition(":")[2] for each in await produced(rest, URL, KEYED)] == ["0", "1"]
    assert [each.rpartition(":")[2] for each in await produced(rest, f"{URL}/partitions/1", KEYED)] == ["1", "1"]
    result = {"errorMsg": f"{NOT_OWNED} broker.", "messageId": "9", "errorCode": 2, "schemaVersion": 0}
    answer = {"messagePublishResults": [result, result], "schemaVersion": 0}
    await play(
        rest,
        Step(f"POST {URL}/partitions/9", 200, answer, KEYED),
        Step(f"POST {URL}/partitions/x", 404, Text(""), KEYED),
    )


async def test_messages_go_to_a_non_persistent_topic(rest: Rest, wire: Wire) -> None:
    name = f"non-{NAME}"
    await wire.subscribe(name)
    await wire.flow()
    await wire.alive()
    url = URL.replace("persistent", "non-persistent")
    assert await produced(rest, url, PLAIN) == ["0:0:-1"]
    assert await wire.payloads(1) == [b"x"]
    assert (await rest.get(f"{NON_PERSISTENT}/t/stats"))["msgInCounter"] == 1


async def test_a_schema_of_another_type_is_refused(rest: Rest) -> None:
    no_number = KEYED | {"messages": [{"sequenceId": "x"}]}
    await rest.done("PUT", f"{TOPICS}/t")
    await produced(rest, URL, KEYED)
    await play(
        rest,
        Step(
            f"POST {URL}",
            409,
            Reason("Unable to add schema SchemaData(type=STRING, isDeleted=false, timestamp="),
            PLAIN,
        ),
        Step(f"POST {URL}", 400, {"reason": "Fail to add or retrieve schema."}, KEYED | {"valueSchema": "junk"}),
        Step(f"POST {URL}", 400, Reason("Fail to publish message: Pulsarium cannot write PROTOBUF"), protobuf()),
        Step(
            f"POST {URL}", 400, Text("Cannot deserialize value of type `java.util.ArrayList"), KEYED | {"messages": 1}
        ),
        Step(f"POST {URL}", 400, Text("Cannot deserialize value of type `long`"), no_number),
        Step(f"POST {URL}", 400, Text("Cannot deserialize value of type"), KEYED | {"messages": [{"properties": [1]}]}),
        Step(f"POST {URL}", 400, Reason('Cannot invoke "java.util.List.iterator()"'), KEYED | {"messages": None}),
        Step(f"POST {URL}", 200, {"messagePublishResults": [], "schemaVersion": 0}, KEYED | {"messages": []}),
        Step(f"POST {URL}", 400, {"reason": "There is no body"}),
    )


async def test_a_known_schema_is_named_by_its_version(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    known = {"schemaVersion": 0, "messages": [{"payload": "x"}]}
    await play(rest, Step(f"POST {URL}", 404, {"reason": "Schema not found"}, known))
    await produced(rest, URL, KEYED)
    await produced(rest, URL, known)
    await play(rest, Step(f"POST {URL}", 404, {"reason": "Schema not found"}, known | {"schemaVersion": 1}))


def protobuf() -> dict[str, Any]:
    return KEYED | {"valueSchema": json.dumps({"type": "PROTOBUF", "schema": "e30="})}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (URL, f"Topic {NAME} not found"),
        (URL.replace("default", "missing"), "Namespace not found"),
    ],
)
async def test_nothing_is_produced_to_absent_topics(url: str, reason: str) -> None:
    async with serving() as bed:
        assert await rest_of(bed).refused("POST", url, PLAIN) == (404, reason)
    async with serving(profile=PULSAR_4_2) as bed:
        assert await rest_of(bed).refused("POST", url, PLAIN) == (500, f"Fail to publish message: {reason}")


@pytest.mark.serving(profile=PULSAR_4_2)
async def test_a_schema_of_another_type_as_released(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await produced(rest, URL, KEYED)
    status, reason = await rest.refused("POST", URL, PLAIN)
    assert status == 500
    assert reason.startswith("Fail to publish message:java.util.concurrent.ExecutionException: org.apache.pulsar")
    assert reason.endswith(f"data=[], props={{__charset=UTF-8}}) to topic {NAME}")


async def test_each_message_says_why_its_topic_did_not_take_it(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await rest.done("POST", f"{NAMESPACES}/public/default/encryptionRequired", True)
    answer = await rest.call("POST", URL, PLAIN)
    result = {"errorMsg": "Messages must be encrypted", "messageId": "-1", "errorCode": 2, "schemaVersion": 0}
    assert (answer.status, answer.json["messagePublishResults"]) == (200, [result])
    await rest.done("POST", f"{NAMESPACES}/public/default/encryptionRequired", False)
    assert (await rest.call("POST", f"{TOPICS}/t/terminate")).status == 200
    (result,) = (await rest.call("POST", URL, PLAIN)).json["messagePublishResults"]
    assert result["errorCode"] == 2


async def test_answers_wait_for_the_disk(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        rest = rest_of(bed)
        await rest.done("PUT", f"{TOPICS}/t")
        (where,) = await produced(rest, URL, PLAIN)
        topic = bed.topic(NAME)
        last = topic.ledger.last_confirmed
        assert where == f"{last.ledger_id}:{last.entry_id}:-1"


async def test_many_messages_hold_nobody_up(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        assert len(await produced(rest, URL, {"messages": [{}] * 1000})) == 1000
        assert turns > 15
        nursery.cancel_scope.cancel()
