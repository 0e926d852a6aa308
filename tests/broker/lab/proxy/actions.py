"""Cases of each action of a fault, for any broker behind the proxy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from pulsarium.broker.lab.faults import (
    Answer,
    Close,
    Corrupt,
    Delay,
    Drop,
    Duplicate,
    Observe,
    Reorder,
    Stall,
    Truncate,
    WrongRequestId,
)
from pulsarium.proto import entry as entries
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.lab.proxy.behind import Behind
from tests.broker.wire import Earliest, Type, Wire, plain

A, B = plain(b"a"), plain(b"b", sequence_id=1)


async def stored(it: Behind, topic: str, count: int) -> list[bytes]:
    """Return the first payloads of a topic."""
    wire = await it.connect(client_version="reader")
    await wire.subscribe(topic, name="reader", initialPosition=Earliest)
    await wire.flow()
    payloads = [entries.payload_of((await wire.next()).trailing) for _ in range(count)]
    await wire.aclose()
    return payloads


async def a_refusal_has_the_text_of_the_rule(it: Behind, topic: str) -> None:
    sender = await it.sender(topic)
    it.lab.faults.add(Answer("ProducerBusy", "not now"), "SEND", topic=topic)
    await sender.write(sender.sends(A))
    error = await sender.expect(Type.SEND_ERROR)
    assert (error.error, error.message) == (pb.ProducerBusy, "not now")
    await sender.publish(B)
    assert await stored(it, topic, 1) == [b"b"]


async def a_dropped_send_is_not_stored(it: Behind, topic: str) -> None:
    sender = await it.sender(topic)
    rule = it.lab.faults.add(Drop(), "SEND", topic=topic)
    await sender.write(sender.sends(A))
    await sender.publish(B)
    assert rule.hits == 1
    assert await stored(it, topic, 1) == [b"b"]


async def a_dropped_receipt_leaves_the_message(it: Behind, topic: str) -> None:
    sender = await it.sender(topic)
    rule = it.lab.faults.add(Drop(), "SEND", stage="after", topic=topic)
    await sender.write(sender.sends(A))
    await sender.publish(B)
    assert rule.hits == 1
    assert await stored(it, topic, 2) == [b"a", b"b"]


async def a_delayed_send_arrives(it: Behind, topic: str) -> None:
    sender = await it.sender(topic)
    rule = it.lab.faults.add(Delay(0.05), "SEND", topic=topic)
    await sender.publish(A, B)
    assert rule.hits == 1
    assert await stored(it, topic, 2) == [b"a", b"b"]


async def a_duplicated_send_is_stored_twice(it: Behind, topic: str) -> None:
    sender = await it.sender(topic)
    it.lab.faults.add(Duplicate(), "SEND", topic=topic)
    await sender.publish(A)
    await sender.receipts(1)
    assert await stored(it, topic, 2) == [b"a", b"a"]


async def the_next_frame_overtakes(it: Behind, topic: str) -> None:
    sender = await it.sender(topic)
    rule = it.lab.faults.add(Reorder(), "SEND", topic=topic)
    await sender.write(sender.sends(A, B))
    assert [(await sender.expect(Type.SEND_RECEIPT)).sequence_id for _ in range(2)] == [1, 0]
    assert rule.hits == 1


async def a_broken_checksum_is_refused(it: Behind, topic: str) -> None:
    sender = await it.sender(topic)
    it.lab.faults.add(Corrupt(), "SEND", topic=topic)
    await sender.write(sender.sends(A))
    error = await sender.expect(Type.SEND_ERROR)
    assert error.error == pb.ChecksumError


async def a_message_is_cut(it: Behind, topic: str) -> None:
    sender = await it.sender(topic)
    await sender.publish(A)
    reader = await _reading(it, topic)
    it.lab.faults.add(Truncate(10), "MESSAGE", topic=topic)
    await reader.flow()
    received = b""
    while data := await reader.stream.receive_some():
        received += data
    assert len(received) == 10


async def a_close_ends_the_connection(it: Behind, topic: str) -> None:
    sender = await it.sender(topic)
    it.lab.faults.add(Close(), "SEND", topic=topic)
    await sender.write(sender.sends(A))
    await sender.closed()
    await (await it.sender(topic)).publish(B)
    assert await stored(it, topic, 1) == [b"b"]


async def a_stall_lasts_until_its_rule_is_removed(it: Behind, topic: str) -> None:
    sender = await it.sender(topic)
    rule = it.lab.faults.add(Stall(), "SEND", topic=topic)
    await sender.write(sender.sends(A, B))
    await rule.wait()
    rule.remove()
    assert len(await sender.receipts(2)) == 2
    assert await stored(it, topic, 2) == [b"a", b"b"]


async def an_answer_has_another_request_id(it: Behind, topic: str) -> None:
    wire = await it.connect()
    it.lab.faults.add(WrongRequestId(), "PRODUCER", stage="after", topic=topic)
    await wire.write(wire.numbered(Type.PRODUCER, topic=topic, producer_id=0))
    assert (await wire.expect(Type.PRODUCER_SUCCESS)).request_id == wire.requests + 1


async def frames_are_counted(it: Behind, topic: str) -> None:
    sender = await it.sender(topic)
    rule = it.lab.faults.observe("SEND", topic=topic)
    await sender.publish(A, B)
    assert rule.hits == 2


async def _reading(it: Behind, topic: str) -> Wire:
    wire = await it.connect()
    await wire.subscribe(topic, name="reading", initialPosition=Earliest)
    return wire


ACTIONS: Final[Mapping[str, tuple[Callable[[Behind, str], Awaitable[None]], ...]]] = {
    Answer.kind: (a_refusal_has_the_text_of_the_rule,),
    Drop.kind: (a_dropped_send_is_not_stored, a_dropped_receipt_leaves_the_message),
    Delay.kind: (a_delayed_send_arrives,),
    Duplicate.kind: (a_duplicated_send_is_stored_twice,),
    Reorder.kind: (the_next_frame_overtakes,),
    Corrupt.kind: (a_broken_checksum_is_refused,),
    Truncate.kind: (a_message_is_cut,),
    Close.kind: (a_close_ends_the_connection,),
    Stall.kind: (a_stall_lasts_until_its_rule_is_removed,),
    WrongRequestId.kind: (an_answer_has_another_request_id,),
    Observe.kind: (frames_are_counted,),
}
CASES: Final = [each for cases in ACTIONS.values() for each in cases]
