"""Optional fields of commands that have no effect, as in Pulsar 4.2.4: the answer is the same with and without them."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import TOPIC, Bed, Individual, Shared, Type, Wire, batch_of

PAIR = [{"key": "k", "value": "v"}]
PROXIED = {"original_principal": "someone", "original_auth_data": "x", "original_auth_method": "token"}
PARTS = {"partition": 3, "batch_index": 1, "batch_size": 2, "first_chunk_message_id": {"ledgerId": 0, "entryId": 0}}
SCHEMA = {"name": "s", "schema_data": b"", "type": pb.Schema.String}
URLS = {"assignedBrokerServiceUrl": "pulsar://other:1", "assignedBrokerServiceUrlTls": "pulsar+ssl://other:2"}


async def answer(bed: Bed, type: int, fields: dict[str, Any]) -> Any:
    """Return the answer to a command on a connection of its own, without the request id."""
    wire = await bed.connect()
    if type == Type.CLOSE_PRODUCER:
        await wire.producer(producer_id=7)
    if type == Type.CLOSE_CONSUMER:
        await wire.subscribe(consumer_id=7, name="closed")
    found = await wire.request(type, **fields)
    await wire.aclose()
    body = next(value for field, value in found.ListFields() if field.name != "type")
    body.request_id = 0
    return body


@pytest.mark.parametrize(
    ("type", "fields", "idle"),
    [
        (Type.LOOKUP, {"topic": TOPIC}, {"properties": PAIR} | PROXIED),
        (Type.PARTITIONED_METADATA, {"topic": TOPIC}, PROXIED),
        (Type.GET_TOPICS_OF_NAMESPACE, {"namespace": "public/default"}, {"properties": PAIR}),
        (Type.GET_OR_CREATE_SCHEMA, {"topic": TOPIC, "schema": SCHEMA}, {"producerName": "p"}),
        (Type.PRODUCER, {"topic": TOPIC, "producer_id": 1, "producer_name": "new"}, {"txn_enabled": True}),
        (
            Type.PRODUCER,
            {"topic": TOPIC, "producer_id": 1, "producer_name": "taken"},
            {"epoch": 9, "user_provided_producer_name": False},
        ),
        (Type.CLOSE_PRODUCER, {"producer_id": 7}, URLS),
        (Type.CLOSE_CONSUMER, {"consumer_id": 7}, URLS),
    ],
)
async def test_fields_without_an_effect_change_no_answer(
    bed: Bed, wire: Wire, type: int, fields: dict[str, Any], idle: dict[str, Any]
) -> None:
    await wire.producer(producer_name="taken")
    assert await answer(bed, type, fields | idle) == await answer(bed, type, fields)


async def test_other_parts_of_a_message_id_change_nothing(bed: Bed, wire: Wire, sender: Wire) -> None:
    """The broker reads the entry of a message id, and the ack set in an ACK or SEEK."""
    first, second = await sender.publish(batch_of(b"a", b"b"), batch_of(b"c", b"d"))
    idle = {"ledgerId": first.ledger_id, "entryId": first.entry_id} | PARTS
    await wire.subscribe(type=Shared, initialPosition=pb.CommandSubscribe.Earliest)
    await wire.flow(4)
    await wire.messages(2)
    await wire.flow(2)
    ids = [idle | {"ack_set": [1]}]
    await wire.send(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=0, message_ids=ids)
    again = await wire.message()
    assert (again.position, list(again.command.ack_set)) == (first, [])
    await wire.ask(Type.ACK, consumer_id=0, ack_type=Individual, message_id=[idle])
    assert bed.subscription().cursor.mark_delete == first
    await wire.subscribe(name="reader", consumer_id=1, durable=False, start_message_id=idle | {"ack_set": [1]})
    await wire.flow(consumer_id=1)
    assert [(each.position, list(each.command.ack_set)) for each in await wire.messages(2)] == [
        (first, []),
        (second, []),
    ]
    await wire.ask(Type.SEEK, consumer_id=0, message_id=idle)
    assert bed.subscription().cursor.backlog() == 2


async def test_a_message_id_in_a_send_is_refused_whatever_it_has(wire: Wire) -> None:
    await wire.producer()
    message_id = {"ledgerId": 1, "entryId": 1, "ack_set": [1]} | PARTS
    await wire.send(Type.SEND, batch_of(b"x"), producer_id=0, sequence_id=1, message_id=message_id)
    assert (await wire.expect(Type.SEND_ERROR)).error == pb.NotAllowedError
