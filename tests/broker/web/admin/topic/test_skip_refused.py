"""Refusals of skipByMessageIds and their order. A refused request acknowledges nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pulsarium.broker.config import PIP, PULSAR_4_2, Config
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.web.http.registry import by_path
from pulsarium.broker.web.routes import all_routes
from pulsarium.proto.special_names import COMPACTION_CURSOR
from tests.broker.web.admin.rest import NON_PERSISTENT, TOPICS, Answer, Rest, rest_of
from tests.broker.web.admin.skipped import SKIP, encoded, format_1, posted, send_batch, skip, triplet
from tests.broker.wire import Bed, Earliest, Exclusive, Failover, Shared, Type, Wire, plain

UNSUPPORTED = (405, "Unsupported subscription type.")
BAD_ID = {"ledgerId": "abc", "entryId": 1}


@pytest.fixture
async def sent(wire: Wire, sender: Wire) -> list[Position]:
    """Publish three messages and a batch of five for a Shared consumer without permits."""
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    found = await sender.publish(*[plain(b"%d" % number) for number in range(3)])
    return [*found, await send_batch(sender)]


def untouched(bed: Bed, entries: int = 4) -> bool:
    cursor = bed.subscription().cursor
    return cursor.backlog() == entries and not len(cursor.batch_acks)


def why(answer: Answer) -> str:
    assert answer.status == 400, answer
    return answer.reason


# 404: topic, subscription, path


@pytest.mark.req("S423-26", "S423-27")
async def test_absent_topics_and_subscriptions_are_404(rest: Rest, sent: list[Position]) -> None:
    ids = format_1([triplet(sent[0])])
    url = f"{TOPICS}/missing/subscription/sub/skipByMessageIds"
    assert await rest.refused("POST", url, ids) == (404, "Topic persistent://public/default/missing not found")
    url = f"{TOPICS}/t/subscription/missing/skipByMessageIds"
    text = "Subscription missing not found for topic persistent://public/default/t"
    assert await rest.refused("POST", url, ids) == (404, text)
    assert await rest.refused("POST", url, format_1([BAD_ID])) == (404, text)
    url = "/admin/v2/persistent/public/missing/t/subscription/sub/skipByMessageIds"
    assert (await rest.refused("POST", url, ids))[0] == 404


@pytest.mark.req("SREV-06")
async def test_other_paths_do_not_skip(wire: Wire, rest: Rest) -> None:
    await wire.subscribe(topic="non-persistent://public/default/n", type=Shared)
    for url in (
        "/admin/v1/persistent/public/standalone/default/t/subscription/sub/skipByMessageIds",
        f"{NON_PERSISTENT}/n/subscription/sub/skipByMessageIds",
        f"{SKIP}/0",
    ):
        assert (await posted(rest, [], url)).status == 404


@pytest.mark.req("S423-72")
@pytest.mark.serving(profile=PULSAR_4_2)
async def test_the_released_broker_does_not_have_it(bed: Bed) -> None:
    rest, wire = rest_of(bed), await bed.connect()
    await wire.producer()
    await wire.subscribe(type=Shared)
    (position,) = await wire.publish(plain(b"0"))
    answer = await posted(rest, format_1([triplet(position)]))
    assert (answer.status, answer.json["message"]) == (404, "Not Found")
    for method, body in (("GET", True), ("PUT", False)):
        answer = await rest.call(method, SKIP, accept="*/*")
        assert (answer.status, b"<h2>HTTP ERROR 404 Not Found</h2>" in answer.body) == (404, body)
    assert untouched(bed, 1)


@pytest.mark.req("S423-74")
def test_everything_else_is_the_same_with_it_and_without() -> None:
    offered = {path: set(handlers) for path, handlers in by_path(all_routes(), PIP)}
    released = {
        path: set(handlers) for path, handlers in by_path(all_routes(), replace(PIP, skip_by_message_ids=False))
    }
    (added,) = offered.keys() - released.keys()
    assert added.endswith("/skipByMessageIds")
    assert offered == {**released, added: {"POST"}}


# 405: the subscription


@pytest.mark.req("S423-28", "S423-29", "S423-32", "S423-34", "S423-35", "SREV-09")
@pytest.mark.parametrize("type", [Exclusive, Failover])
async def test_exclusive_and_failover_subscriptions_are_not_skipped(
    bed: Bed, wire: Wire, sender: Wire, rest: Rest, type: int
) -> None:
    await wire.subscribe(type=type)
    (position,) = await sender.publish(plain(b"0"))
    for body in (format_1([triplet(position)]), format_1([triplet(position, 7)]), format_1([BAD_ID]), {}, [""]):
        assert await rest.refused("POST", SKIP, body) == UNSUPPORTED
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    assert await rest.refused("POST", SKIP, format_1([triplet(position)])) == UNSUPPORTED
    await wire.subscribe(type=type)
    await wire.flow()
    messages = await wire.rest(2)
    assert [base.type for base, _ in messages if base.type == Type.MESSAGE] == [Type.MESSAGE]
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await wire.subscribe(type=Shared)
    await skip(rest, position)
    assert untouched(bed, 0)


@pytest.mark.req("S423-87")
@pytest.mark.parametrize("name", [COMPACTION_CURSOR, "pulsar.repl.elsewhere"])
async def test_cursors_of_the_broker_are_not_skipped(rest: Rest, sent: list[Position], name: str) -> None:
    url = f"{TOPICS}/t/subscription/{name}/skipByMessageIds"
    assert await rest.refused("POST", url, format_1([triplet(sent[0])])) == UNSUPPORTED
    assert (await rest.refused("POST", url.replace("/t/", "/missing/"), []))[0] == 404


@pytest.mark.req("S423-85")
@pytest.mark.serving(Config(acknowledgmentAtBatchIndexLevelEnabled=False))
async def test_messages_of_batches_are_not_skipped_without_acknowledgement_in_batches(bed: Bed) -> None:
    rest, sender, wire = rest_of(bed), await bed.connect(), await bed.connect()
    await sender.producer()
    await wire.subscribe(type=Shared)
    batch, other = await send_batch(sender), await send_batch(sender)
    text = "Single messages of a batch cannot be skipped: acknowledgmentAtBatchIndexLevelEnabled is false"
    for body in (format_1([triplet(other), triplet(batch, 2)]), [encoded(batch, batch_index=2)]):
        assert await rest.refused("POST", SKIP, body) == (405, text)
    assert untouched(bed, 2)
    await skip(rest, other)
    await wire.flow()
    message = await wire.message()
    assert (message.position, list(message.command.ack_set)) == (batch, [])
    await wire.quiet()


# 400: the ids


@pytest.mark.req("S423-12", "S423-19")
@pytest.mark.parametrize("body", [b"{", b"", b"null", b"[", b"\xff", b'{"type":"messageId","messageIds":[}'])
async def test_a_skip_request_that_is_no_json_is_refused(
    bed: Bed, rest: Rest, sent: list[Position], body: bytes
) -> None:
    assert (await rest.call("POST", SKIP, body=body)).status == 400
    assert untouched(bed)


@pytest.mark.req("S423-13", "S423-14", "S423-16", "S423-18", "S423-20", "S423-36", "SREV-03", "SREV-07")
@pytest.mark.parametrize("wrong", [BAD_ID, {"entryId": 45}, {"batchIndex": -1}, "not_base64!!", 5, {"12345": "100"}])
async def test_one_wrong_id_spoils_all(bed: Bed, rest: Rest, sent: list[Position], wrong: Any) -> None:
    if isinstance(wrong, dict) and "batchIndex" in wrong:
        wrong = {**triplet(sent[3]), **wrong}
    in_words = {"type": "messageId", "messageIds": [triplet(sent[0]), wrong]}
    for body in (in_words, [encoded(sent[0]), wrong], {"messageIds": wrong}, wrong):
        assert why(await posted(rest, body)).startswith("Invalid skipByMessageIds payload: ")
        assert untouched(bed)


@pytest.mark.req("S423-15", "S423-17", "S423-36")
async def test_batch_indexes_that_are_not_there_are_refused(
    bed: Bed, wire: Wire, rest: Rest, sent: list[Position]
) -> None:
    plain_one, batch = sent[1], sent[3]
    for wrong, text in [
        (triplet(batch, 5), f"Invalid batch index 5: message {batch} is a batch of 5"),
        (triplet(plain_one, 0), f"Invalid batch index 0: message {plain_one} is not a batch"),
        (triplet(plain_one, 1), f"Invalid batch index 1: message {plain_one} is not a batch"),
    ]:
        ids = [triplet(sent[0]), triplet(batch, 1), wrong]
        for body in (format_1(ids), format_1(reversed(ids))):
            assert why(await posted(rest, body)) == text
            assert untouched(bed)
    assert why(await posted(rest, [encoded(batch, batch_index=9)])).startswith("Invalid batch index 9")
    await wire.flow()
    assert [message.position for message in await wire.messages(4)] == sent


@pytest.mark.req("S423-53")
async def test_messages_that_are_still_to_come_are_not_skipped(
    bed: Bed, rest: Rest, sent: list[Position], sender: Wire
) -> None:
    """An acknowledgement of a future entry would lose a message."""
    ledger = sent[0].ledger_id
    for position in (Position(ledger, 4), Position(ledger, 999)):
        for wrong in (triplet(position), triplet(position, 0)):
            text = f"Message {position} does not exist: it is beyond the last entry of its ledger"
            assert why(await posted(rest, format_1([triplet(sent[0]), wrong]))) == text
    await rest.done("PUT", f"{TOPICS}/t/unload")
    await sender.expect(Type.CLOSE_PRODUCER)
    await sender.producer(producer_id=1)
    await sender.publish(plain(b"in the next ledger"), producer_id=1)
    assert (await posted(rest, format_1([triplet(Position(ledger, 4))]))).status == 400
    assert untouched(bed, 5)


async def test_entries_that_claim_to_be_batches_are_skipped_as_a_whole(
    bed: Bed, wire: Wire, sender: Wire, rest: Rest
) -> None:
    """The broker makes no ack set of a length that an entry merely claims."""
    await wire.subscribe(type=Shared)
    positions = await sender.publish(
        plain(b"", num_messages_in_batch=2**31 - 1),
        plain(b"", num_messages_in_batch=0),
        plain(b"", num_messages_in_batch=-1),
    )
    for position in positions:
        assert "is not a batch" in why(await posted(rest, format_1([triplet(position, 0)])))
    await skip(rest, *positions)
    assert untouched(bed, 0)


async def test_a_body_of_another_media_type_is_refused(bed: Bed, rest: Rest, sent: list[Position]) -> None:
    answer = await rest.call("POST", SKIP, format_1([triplet(sent[0])]), content_type="text/plain")
    assert answer.status == 415
    assert untouched(bed)
