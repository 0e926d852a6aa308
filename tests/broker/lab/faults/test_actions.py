"""Actions of fault rules on a frame, before and after the broker's work."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import trio

from pulsarium.broker.lab.faults import (
    Answer,
    Close,
    Corrupt,
    Delay,
    Drop,
    Duplicate,
    FaultError,
    Faults,
    Reorder,
    Stall,
    Truncate,
    WrongRequestId,
)
from pulsarium.proto import entry as entries
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import TOPIC, Bed, Earliest, Type, Wire, frame_of, message_id, plain

A, B, C = plain(b"a"), plain(b"b"), plain(b"c")


async def stored(bed: Bed) -> list[bytes]:
    """Return the payloads of the topic, read by a client that no rule selects."""
    wire = await bed.connect(client_version="reader")
    await wire.subscribe(name="reader", initialPosition=Earliest)
    await wire.flow()
    return [entries.payload_of(received.trailing) for received in await wire.rest()]


async def test_a_send_is_lost(faults: Faults, bed: Bed, sender: Wire) -> None:
    rule = faults.add(Drop(), "SEND")
    await sender.write(sender.sends(A))
    await sender.quiet()
    await sender.publish(B)
    assert (rule.hits, rule.matched) == (1, 2)
    assert await stored(bed) == [b"b"]


async def test_a_receipt_is_lost_but_not_the_message(faults: Faults, bed: Bed, sender: Wire) -> None:
    rule = faults.add(Drop(), "SEND", stage="after")
    await sender.write(sender.sends(A))
    await sender.quiet()
    await sender.publish(B)
    assert rule.hits == 1
    assert await stored(bed) == [b"a", b"b"]


async def test_a_send_is_refused(faults: Faults, bed: Bed, sender: Wire) -> None:
    faults.add(Answer("ProducerBusy", "not now"), "SEND")
    await sender.write(sender.sends(A))
    error = await sender.expect(Type.SEND_ERROR)
    assert (error.producer_id, error.sequence_id) == (0, 0)
    assert (error.error, error.message) == (pb.ProducerBusy, "not now")
    await sender.publish(B)
    assert await stored(bed) == [b"b"]


async def test_work_is_done_and_called_failed(faults: Faults, bed: Bed, sender: Wire) -> None:
    faults.add(Answer(pb.PersistenceError), "SEND", stage="after")
    await sender.write(sender.sends(A))
    assert (await sender.expect(Type.SEND_ERROR)).error == pb.PersistenceError
    await sender.alive()
    assert await stored(bed) == [b"a"]


@pytest.mark.parametrize(
    ("command", "fields", "form", "says"),
    [
        (Type.LOOKUP, {"topic": TOPIC}, Type.LOOKUP_RESPONSE, {"response": pb.CommandLookupTopicResponse.Failed}),
        (
            Type.PARTITIONED_METADATA,
            {"topic": TOPIC},
            Type.PARTITIONED_METADATA_RESPONSE,
            {"response": pb.CommandPartitionedTopicMetadataResponse.Failed},
        ),
        (Type.GET_TOPICS_OF_NAMESPACE, {"namespace": "public/default"}, Type.ERROR, {}),
        (Type.PRODUCER, {"topic": TOPIC, "producer_id": 0}, Type.ERROR, {}),
        (Type.ACK, {"consumer_id": 3, "ack_type": 0}, Type.ACK_RESPONSE, {"consumer_id": 3}),
        (Type.NEW_TXN, {}, Type.NEW_TXN_RESPONSE, {}),
        (Type.GET_LAST_MESSAGE_ID, {"consumer_id": 3}, Type.ERROR, {}),
    ],
)
async def test_each_command_is_refused_in_its_own_form(
    faults: Faults, wire: Wire, command: int, fields: dict[str, Any], form: int, says: dict[str, Any]
) -> None:
    faults.add(Answer("ServiceNotReady", "m"), Type.Type.Name(command))
    answer = await wire.request(command, **fields)
    assert answer.type == form
    body = getattr(answer, next(field.name for field, _ in answer.ListFields() if field.name != "type"))
    assert (body.error, body.message) == (pb.ServiceNotReady, "m")
    assert {name: getattr(body, name) for name in says} == says


@pytest.mark.parametrize("command", [Type.CONSUMER_STATS, Type.GET_OR_CREATE_SCHEMA, Type.GET_SCHEMA])
async def test_some_forms_call_it_error_code(faults: Faults, wire: Wire, command: int) -> None:
    faults.add(Answer("MetadataError", "m"), "*", predicate=lambda frame: frame.spec.type == command)
    schema = {"name": "s", "schema_data": b"", "type": 0}
    fields: dict[int, dict[str, Any]] = {
        Type.CONSUMER_STATS: {"consumer_id": 1},
        Type.GET_SCHEMA: {"topic": TOPIC},
        Type.GET_OR_CREATE_SCHEMA: {"topic": TOPIC, "schema": schema},
    }
    body = await wire.ask(command, **fields[command])
    assert (body.error_code, body.error_message) == (pb.MetadataError, "m")


@pytest.mark.parametrize("stage", ["before", "after"])
async def test_a_connect_that_is_refused_ends_the_connection(
    faults: Faults, bed: Bed, stage: Literal["before", "after"]
) -> None:
    faults.add(Answer("AuthenticationError", "no"), "CONNECT", stage=stage)
    wire = bed.dial()
    await wire.send(Type.CONNECT, client_version="x", protocol_version=19)
    error = await wire.expect(Type.ERROR)
    assert (error.request_id, error.error) == (2**64 - 1, pb.AuthenticationError)
    assert await wire.closed() == []
    await bed.connect()


async def test_a_receipt_is_late_and_so_is_what_follows(faults: Faults, sender: Wire) -> None:
    faults.add(Delay(5), "SEND_RECEIPT")
    began = trio.current_time()
    await sender.write(sender.sends(A, B))
    await sender.quiet(1)
    await sender.send(Type.PING)
    await sender.quiet(3.9)
    await sender.receipts(2)
    await sender.expect(Type.PONG)
    assert trio.current_time() - began == pytest.approx(5)


async def test_a_late_command_holds_up_what_is_behind_it(faults: Faults, bed: Bed, sender: Wire) -> None:
    faults.add(Delay(3), "SEND")
    await sender.write(sender.sends(A))
    await sender.write(frame_of(Type.PING) + sender.sends(B))
    await sender.quiet(2.9)
    await sender.expect(Type.PONG)
    first, second = await sender.receipts(2)
    assert first < second
    assert await stored(bed) == [b"a", b"b"]


async def test_a_slow_network_is_late_and_not_later_with_each_frame(faults: Faults, sender: Wire) -> None:
    faults.add(Delay(5), "SEND", count=None)
    began = trio.current_time()
    await sender.write(sender.sends(A, B))
    await trio.sleep(2)
    await sender.write(sender.sends(C))
    await sender.receipts(2)
    assert trio.current_time() - began == pytest.approx(5)
    await sender.receipts(1)
    assert trio.current_time() - began == pytest.approx(7)


async def test_a_late_answer(faults: Faults, wire: Wire) -> None:
    faults.add(Delay(2), "PING", stage="after")
    began = trio.current_time()
    await wire.alive()
    assert trio.current_time() - began == pytest.approx(2)
    await wire.alive()
    assert trio.current_time() - began == pytest.approx(2)


async def test_a_frame_comes_again(faults: Faults, bed: Bed, sender: Wire) -> None:
    faults.add(Duplicate(2), "SEND")
    await sender.write(sender.sends(A))
    await sender.receipts(3)
    assert await stored(bed) == [b"a"] * 3
    faults.add(Duplicate(), "SEND_RECEIPT")
    await sender.write(sender.sends(B))
    again = await sender.receipts(2)
    assert again[0] == again[1]


async def test_one_message_overtakes_another(faults: Faults, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.flow()
    faults.add(Reorder(), "MESSAGE")
    await sender.publish(A, B, C)
    assert await wire.payloads(3) == [b"b", b"a", b"c"]


async def test_a_reordered_frame_goes_on_when_none_overtakes(faults: Faults, bed: Bed, sender: Wire) -> None:
    faults.add(Reorder(), "SEND", count=None)
    began = trio.current_time()
    await sender.publish(A)
    assert 0.05 < trio.current_time() - began < 0.5
    await sender.write(sender.sends(B))
    await sender.write(sender.sends(C))
    await sender.receipts(2)
    assert await stored(bed) == [b"a", b"c", b"b"]


async def test_a_send_with_a_broken_checksum(faults: Faults, bed: Bed, sender: Wire) -> None:
    rule = faults.add(Corrupt(), "SEND")
    await sender.write(sender.sends(plain(b"unchecked", checksum=False)))
    await sender.receipts(1)
    assert rule.matched == 0
    await sender.write(sender.sends(A))
    assert (await sender.expect(Type.SEND_ERROR)).error == pb.ChecksumError
    assert await stored(bed) == [b"unchecked"]


async def test_a_message_with_a_broken_checksum_is_whole_in_the_broker(faults: Faults, bed: Bed, sender: Wire) -> None:
    await sender.publish(A)
    faults.add(Corrupt("checksum"), "MESSAGE")
    wire = await bed.connect()
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    received = await wire.next()
    assert entries.checksum_matches(received.trailing) is False
    assert received.trailing[6:] == A[6:]
    assert await stored(bed) == [b"a"]


async def test_the_seed_chooses_the_byte_that_is_corrupted(faults: Faults, bed: Bed, sender: Wire) -> None:
    await sender.publish(A)
    seen = []
    for _ in range(2):
        with faults.add(Corrupt("byte"), "MESSAGE", seed=7):
            wire = await bed.connect()
            await wire.subscribe(name="s", initialPosition=Earliest)
            await wire.flow()
            seen.append((await wire.next()).trailing)
            await wire.aclose()
            await bed.connect()  # after this, the subscription is free again
    assert seen[0] == seen[1]
    assert len(seen[0]) == len(A)
    assert sum(one != other for one, other in zip(seen[0], A, strict=True)) == 1


async def test_a_command_without_an_entry_is_corrupted_itself(faults: Faults, wire: Wire) -> None:
    rule = faults.add(Corrupt("byte"), "LOOKUP", seed=1)
    await wire.write(wire.numbered(Type.LOOKUP, topic=TOPIC))
    await wire.rest()
    assert rule.hits == 1


async def test_the_beginning_of_a_frame_and_then_the_end(faults: Faults, wire: Wire) -> None:
    faults.add(Truncate(5), "PONG")
    await wire.send(Type.PING)
    with trio.fail_after(1):
        data = b""
        while piece := bytes(await wire.stream.receive_some(100)):
            data += piece
    assert len(data) == 5
    assert int.from_bytes(data[:4], "big") > 1


async def test_a_command_that_is_cut_off_is_not_handled(faults: Faults, bed: Bed, sender: Wire) -> None:
    faults.add(Truncate(20), "SEND")
    await sender.write(sender.sends(A, B))
    assert await sender.closed() == []
    assert await stored(bed) == []


async def test_the_connection_is_closed_instead(faults: Faults, bed: Bed, sender: Wire) -> None:
    faults.add(Close(), "SEND", skip=1)
    await sender.write(sender.sends(A, B, C))
    assert [received.command.type for received in await sender.closed()] in ([Type.SEND_RECEIPT], [])
    assert await stored(bed) == [b"a"]


async def test_the_connection_is_closed_after_the_work(faults: Faults, bed: Bed, sender: Wire) -> None:
    faults.add(Close(), "SEND", stage="after")
    await sender.write(sender.sends(A))
    assert await sender.closed() == []
    assert await stored(bed) == [b"a"]


async def test_nothing_moves_until_the_rule_is_gone(faults: Faults, bed: Bed, sender: Wire) -> None:
    rule = faults.add(Stall(), "SEND")
    await sender.write(sender.sends(A) + frame_of(Type.PING))
    await sender.quiet(5)
    assert await stored(bed) == []
    rule.remove()
    await sender.expect(Type.PONG)
    await sender.receipts(1)
    await sender.alive()


async def test_the_broker_is_not_heard_until_the_rule_is_gone(faults: Faults, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.flow()
    with faults.add(Stall(), "MESSAGE"):
        await sender.publish(A, B)
        await wire.send(Type.PING)
        await wire.quiet(5)
    assert await wire.payloads(2) == [b"a", b"b"]
    await wire.expect(Type.PONG)


async def test_an_answer_gets_the_next_request_id_or_sequence_id(faults: Faults, bed: Bed, sender: Wire) -> None:
    faults.add(WrongRequestId(), "SEND_RECEIPT")
    await sender.write(sender.sends(A))
    assert (await sender.expect(Type.SEND_RECEIPT)).sequence_id == 1
    faults.add(WrongRequestId(), "LOOKUP", stage="after")
    await sender.send(Type.LOOKUP, topic=TOPIC, request_id=41)
    assert (await sender.expect(Type.LOOKUP_RESPONSE)).request_id == 42
    faults.add(WrongRequestId(), "LOOKUP")
    await sender.send(Type.LOOKUP, topic=TOPIC, request_id=2**64 - 1)
    assert (await sender.expect(Type.LOOKUP_RESPONSE)).request_id == 0


async def test_acks_have_an_after_only_with_an_answer(faults: Faults, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.flow()
    positions = await sender.publish(A, B)
    await wire.messages(2)
    rule = faults.add(Drop(), "ACK", stage="after")
    await wire.send(Type.ACK, consumer_id=0, ack_type=0, message_id=[message_id(positions[0])])
    await wire.alive()
    assert rule.matched == 0
    await wire.send(Type.ACK, consumer_id=0, ack_type=0, message_id=[message_id(positions[1])], request_id=9)
    await wire.alive()
    assert rule.hits == 1


async def test_a_command_whose_connection_ended_before_its_answer_leaves_its_turn_to_another(
    faults: Faults, bed: Bed, wire: Wire
) -> None:
    rule = faults.add(Drop(), "ACK", stage="after")
    await wire.send(Type.ACK, consumer_id=5, ack_type=0, request_id=1)  # consumer 5 does not exist: no answer
    await wire.alive()
    assert (rule.matched, rule.hits, rule.occurrence.spent) == (1, 0, True)
    await wire.aclose()
    other = await bed.connect()
    assert not rule.occurrence.spent
    await other.alive()


@pytest.mark.parametrize(
    ("action", "command", "options", "why"),
    [
        (Drop, "FLOW", {}, r"pass an action such as Drop\(\)"),
        (Drop(), "FLOW", {"stage": "after"}, "FLOW has no answer"),
        (Drop(), "PONG", {"stage": "after", "sender": "client"}, "PONG has no answer"),
        (Drop(), "SEND_RECEIPT", {"stage": "after"}, "is for commands of a client"),
        (Answer("UnknownError"), "FLOW", {}, "FLOW has no answer that can be an error"),
        (Answer("UnknownError"), "PING", {}, "PING has no answer that can be an error"),
        (Answer("UnknownError"), "MESSAGE", {}, "is for commands of a client"),
        (Corrupt(), "ACK", {}, "ACK has no checksum"),
        (Corrupt(), "SEND", {"stage": "after"}, "SEND_RECEIPT has no checksum"),
        (WrongRequestId(), "MESSAGE", {}, "MESSAGE has no request id"),
        (Drop(), "SENDS", {}, "no command 'SENDS'; did you mean SEND"),
        (Drop(), "SEND", {"sender": "broker"}, "SEND is sent by the client"),
        (Drop(), "SEND", {"sender": "nobody"}, "it must be client or broker"),
        (Drop(), "SEND", {"stage": "between"}, "it must be before or after"),
        (Drop(), "SEND", {"broker": 1}, "there are 0 to 0"),
        (Drop(), "SEND", {"skip": -1}, "it must be 0 or more"),
        (Drop(), "SEND", {"every": 0}, "it must be 1 or more"),
        (Drop(), "SEND", {"count": 0}, "it must be 1 or more, or None for no limit"),
        (Drop(), "SEND", {"probability": 1.5}, "it must be from 0 to 1"),
    ],
)
async def test_an_action_that_cannot_be_is_refused(
    faults: Faults, action: Any, command: str, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(FaultError, match=why):
        faults.add(action, command, **options)
    assert faults.rules == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: Answer("Nonsense"),
        lambda: Answer(99),
        lambda: Answer("UnknownError", "\ud800"),
        lambda: Delay(0),
        lambda: Delay(float("nan")),
        lambda: Delay(10**400),
        lambda: Duplicate(0),
        lambda: Corrupt("soul"),
        lambda: Truncate(-1),
    ],
)
def test_actions_that_make_no_sense(make: Any) -> None:
    with pytest.raises(FaultError):
        make()


async def test_answers_with_one_id_are_those_of_the_commands_in_their_order(faults: Faults, sender: Wire) -> None:
    faults.add(Drop(), "SEND", stage="after")
    faults.add(Duplicate(), "SEND", stage="after")
    await sender.write(frame_of(Type.SEND, A, producer_id=0, sequence_id=4, num_messages=1) * 2)
    assert [position.entry_id for position in await sender.receipts(2)] == [1, 1]
    await sender.quiet()


@pytest.mark.parametrize("count", [1, None])
async def test_an_answer_among_the_last_words_is_struck(
    faults: Faults, bed: Bed, sender: Wire, count: int | None
) -> None:
    rule = faults.add(Drop(), "SEND", stage="after", count=count)
    faults.add(Close(), "PING")
    await sender.write(sender.sends(A) + frame_of(Type.PING))
    assert await sender.closed() == []
    assert (rule.hits, rule.occurrence.spent) == (1, count == 1)
    assert await stored(bed) == [b"a"]
