"""Previews of acts: which messages each touches. Nothing changes."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.web.console import preview
from tests.broker.model.upkeep.policed import fresh
from tests.broker.web.admin.rest import TOPICS, Answer, Rest
from tests.broker.wire import TOPIC, Bed, Earliest, Exclusive, Shared, Wire, batch_of, message_id, plain

URL = "/pulsarium/preview/persistent/public/default/t"


async def asked(rest: Rest, act: str, **values: Any) -> dict[str, Any]:
    answer: Answer = await rest.call("POST", URL, {"act": act, "subscription": "sub", **values})
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json
    return found


def touched(found: dict[str, Any]) -> tuple[int, str | None, str | None]:
    """Return the number of messages, and the ids of the first and the last."""
    first, last = found["first"], found["last"]
    return found["touched"], first and first["id"], last and last["id"]


async def backlog(wire: Wire, count: int = 4, **subscribe: Any) -> list[Position]:
    await wire.subscribe(**{"type": Shared, "initialPosition": Earliest, **subscribe})
    await wire.producer()
    return await wire.publish(*(plain(str(each).encode()) for each in range(count)))


@pytest.mark.parametrize(
    ("act", "values", "expected", "text"),
    [
        ("skip", {"count": 2}, (2, 0, 1), "2 messages are acknowledged without being processed"),
        ("skip", {"count": 9}, (4, 0, 3), "4 messages are acknowledged without being processed"),
        ("clear", {}, (4, 0, 3), "4 messages are acknowledged without being processed"),
        ("expire-to", {"position": 1}, (2, 0, 1), "2 messages are acknowledged without being processed"),
        ("skip-message", {"position": 2}, (1, 2, 2), "1 message is acknowledged without being processed"),
        ("seek", {"position": 3}, (3, 0, 2), "3 messages are passed without being processed"),
        ("seek", {"position": "earliest"}, (0, None, None), "Nothing is touched: no message fits"),
        ("unsubscribe-force", {}, (4, 0, 3), "4 messages are no longer kept for the subscription"),
        ("truncate", {}, (4, 0, 3), "4 messages are deleted for all subscriptions"),
        ("delete-force", {}, (4, 0, 3), "4 messages are deleted for all subscriptions"),
    ],
)
async def test_an_act_says_what_it_touches(
    rest: Rest, wire: Wire, bed: Bed, act: str, values: dict[str, Any], expected: tuple[Any, ...], text: str
) -> None:
    sent = await backlog(wire)
    if isinstance(values.get("position"), int):
        values = {"position": str(sent[values["position"]])}
    found = await asked(rest, act, **values)
    ids = tuple(None if each is None else str(sent[each]) for each in expected[1:])
    assert (touched(found), found["text"], found["unit"]) == ((expected[0], *ids), text, "messages")
    assert (found["refused"], bed.subscription().cursor.backlog()) == (None, 4)


async def test_a_seek_back_says_what_is_delivered_again_and_how_to_undo_it(rest: Rest, wire: Wire, bed: Bed) -> None:
    sent = await backlog(wire)
    await wire.flow()
    await wire.messages(4)
    await wire.ack(sent[0], sent[1], sent[3])
    await wire.alive()
    found = await asked(rest, "seek", position="earliest")
    assert touched(found) == (2, str(sent[0]), str(sent[1]))
    assert found["undo"] == {"position": str(sent[2])}
    assert found["text"] == (
        "2 messages are delivered again; 1 individually acknowledged entries are delivered again too, "
        "which no seek undoes"
    )


async def test_going_back_in_time_finds_the_message(rest: Rest, wire: Wire, bed: Bed) -> None:
    await wire.subscribe(type=Shared)
    await wire.producer()
    sent = await wire.publish(*(fresh(bed.broker, b"x", age=age) for age in (300, 200, 100)))
    await wire.flow()
    await wire.messages(3)
    await wire.ack(*sent)
    await wire.alive()
    assert touched(await asked(rest, "rewind", seconds=250)) == (2, str(sent[1]), str(sent[2]))


async def test_old_messages_expire(rest: Rest, wire: Wire, bed: Bed) -> None:
    await wire.producer()
    bed.topic().subscribe("sub", earliest=True)
    sent = await wire.publish(*(fresh(bed.broker, b"x", age=age) for age in (300, 200, 1)))
    assert touched(await asked(rest, "expire", seconds=100)) == (2, str(sent[0]), str(sent[1]))
    await wire.subscribe(type=Shared)
    assert "nothing expires" in (await asked(rest, "expire", seconds=250))["refused"]


async def test_messages_of_a_batch_are_counted(rest: Rest, wire: Wire) -> None:
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    await wire.producer()
    (position,) = await wire.publish(batch_of(b"a", b"b", b"c"), num_messages=3)
    await wire.flow()
    await wire.message()
    await wire.ack(message_id=[message_id(position, ack_set=[0b101])])
    await wire.alive()
    found = await asked(rest, "clear")
    assert (found["touched"], found["unit"], found["last"]["batchIndex"]) == (2, "messages", 2)
    assert (await asked(rest, "skip-message", position=f"{position}:0"))["touched"] == 1
    assert "acknowledged already" in (await asked(rest, "skip-message", position=f"{position}:1"))["refused"]


async def test_many_messages_are_counted_as_entries(rest: Rest, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "COUNTED", 3)
    await backlog(wire)
    found = await asked(rest, "clear")
    assert (found["touched"], found["unit"]) == (4, "entries")


@pytest.mark.parametrize(
    ("act", "values", "reason"),
    [
        ("unsubscribe", {}, "1 consumers are connected"),
        ("delete", {}, "connected"),
        ("skip-message", {"position": "0:0"}, "only messages of Shared and Key_Shared subscriptions"),
        ("expire-to", {"position": "99:0"}, "99:0 is beyond the last message"),
    ],
)
async def test_an_act_that_would_be_refused_says_so(
    rest: Rest, wire: Wire, act: str, values: dict[str, Any], reason: str
) -> None:
    await backlog(wire, type=Exclusive)
    found = await asked(rest, act, **values)
    assert reason in found["refused"]
    assert (found["touched"], found["text"]) == (0, found["refused"])


async def test_an_act_on_a_partitioned_topic_touches_all_partitions(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{TOPICS}/t/partitions", 3)
    for index in range(3):
        await wire.subscribe(f"{TOPIC}-partition-{index}", consumer_id=index, type=Shared)
        await wire.producer(f"{TOPIC}-partition-{index}", index)
    await wire.publish(plain(b"a", publish_time=1), plain(b"b", publish_time=2), producer_id=0)
    await wire.publish(plain(b"c", publish_time=3), producer_id=2)
    found = await asked(rest, "clear")
    assert (found["touched"], found["first"]["value"], found["last"]["value"]) == (3, "a", "c")
    assert found["text"].endswith(", in 2 partitions")
    assert len((await asked(rest, "seek", position="latest"))["undo"]["positions"]) == 3


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"act": "dance"}, 400),
        ({"act": "skip", "subscription": "other"}, 404),
        ({"act": "skip", "subscription": "sub", "count": "x"}, 400),
        ({"act": "seek", "subscription": "sub", "position": "x"}, 400),
    ],
)
async def test_a_wrong_question_is_refused(rest: Rest, wire: Wire, body: Any, status: int) -> None:
    await backlog(wire)
    assert (await rest.refused("POST", URL, body))[0] == status
