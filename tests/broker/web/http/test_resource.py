"""REST calls: their bodies, their commits, and exceptions of handlers. Answers in pieces."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pulsarium.broker.net import slices
from pulsarium.broker.web.http import call
from pulsarium.broker.web.http.reply import (
    AT_ONCE,
    HttpReply,
    WrittenJson,
    gathered,
    json_bytes,
    json_pieces,
    json_reply,
)
from pulsarium.broker.web.http.request import ClientGone, HttpRequest
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.passes import passes_of_the_loop
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, TENANTS, TOPICS, Answer, Rest, rest_of
from tests.broker.wire import Bed, serving

LIMIT = 5_242_880 + 10_240
TENANT = {"adminRoles": [], "allowedClusters": ["standalone"]}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"{not json", "Unexpected character ('n' (code 110)): was expecting double-quote to start field name"),
        (b'{"a": [1', "Unexpected end-of-input: expected close marker for Array (start marker at "),
        (b"[1", "Cannot deserialize value of type"),
        (b"{} 1", "Trailing token (of type VALUE_NUMBER_INT) found after value"),
        (b'"\xff"', "Invalid UTF-8"),
        (b"[]", "Cannot deserialize value of type `org.apache.pulsar.common.policies.data.TenantInfoImpl` from Array"),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused(rest: Rest, body: bytes, text: str) -> None:
    answer = await rest.call("PUT", f"{TENANTS}/t", body=body)
    assert (answer.status, answer.headers["content-type"]) == (400, "text/plain")
    assert answer.body.decode().startswith(text)


@pytest.mark.parametrize("body", [b'{"a": ' + b"9" * 5_000 + b"}", b'{"a": ' + b"[" * 100_000])
async def test_a_body_beyond_the_limits_of_jackson_is_refused_without_a_text(rest: Rest, body: bytes) -> None:
    answer = await rest.call("PUT", f"{TENANTS}/t", body=body)
    assert (answer.status, answer.body) == (400, b"")


async def test_a_body_of_another_type_is_refused(rest: Rest) -> None:
    answer = await rest.call("PUT", f"{TENANTS}/t", TENANT, content_type="text/plain")
    assert (answer.status, answer.body) == (415, b"")
    answer = await rest.call("PUT", f"{TENANTS}/t", TENANT, content_type="application/json; charset=UTF-8")
    assert answer.status == 204


async def test_a_body_in_pieces_is_put_together(rest: Rest) -> None:
    body = b'{"allowedClusters":["standalone"]}'
    answer = await rest.call("PUT", f"{TENANTS}/t", body=[body[i : i + 1] for i in range(len(body))])
    assert answer.status == 204


async def test_null_is_taken_in_the_place_of_a_list(rest: Rest) -> None:
    await rest.done("POST", "/admin/v2/clusters/standalone/peers", None)


async def test_of_a_repeated_parameter_the_first_counts(rest: Rest) -> None:
    url = f"{TOPICS}/t/partitions?checkAllowAutoCreation={{}}&checkAllowAutoCreation={{}}"
    assert (await rest.call("GET", url.format("true", "false"))).status == 200
    assert (await rest.call("GET", url.format("false", "true"))).status == 404


async def test_a_body_that_is_announced_too_large_is_refused(rest: Rest) -> None:
    answer = await rest.call("PUT", f"{TENANTS}/t", body=b"{}", content_length=str(LIMIT + 1))
    assert (answer.status, answer.headers["connection"]) == (413, "close")


async def test_a_body_that_never_ends_is_refused(rest: Rest) -> None:
    taken = 0

    def pieces() -> Iterator[bytes]:
        nonlocal taken
        while taken <= 100:
            taken += 1
            yield bytes(1 << 20)

    assert (await rest.call("PUT", f"{TENANTS}/t", body=pieces())).status == 413
    assert taken <= 7


async def test_a_body_that_stays_away_is_not_waited_for(autojump_clock: object, rest: Rest, bed: Bed) -> None:
    """A client that announces a body and sends none cannot hold the connection for ever, even with credentials."""
    pieces = [b"{", b'"adminRoles"']

    async def receive() -> bytes:
        await trio.sleep(20 if pieces else math.inf)
        return pieces.pop(0)

    began = trio.current_time()
    with trio.fail_after(100):
        answer = await rest.ask(HttpRequest("PUT", f"{TENANTS}/t".encode(), [], rest.caller, receive))
    assert trio.current_time() - began == pytest.approx(70)
    assert (answer.status, answer.headers["connection"]) == (408, "close")
    assert "t" not in bed.broker.metadata.tenants


async def test_a_client_that_goes_away_changes_nothing(rest: Rest, bed: Bed) -> None:
    pieces = [b"{"]

    async def receive() -> bytes:
        if not pieces:
            raise ClientGone
        return pieces.pop(0)

    with pytest.raises(ClientGone):  # the client gets no answer
        await rest.ask(HttpRequest("PUT", f"{TENANTS}/t".encode(), [], rest.caller, receive))
    assert "t" not in bed.broker.metadata.tenants


async def test_a_fault_of_the_broker_is_answered(rest: Rest, bed: Bed, caplog: pytest.LogCaptureFixture) -> None:
    with patch.object(bed.broker.metadata, "put_tenant", side_effect=RuntimeError("boom")):
        status, reason = await rest.refused("PUT", f"{TENANTS}/t", TENANT)
    assert status == 500
    assert reason.startswith("\n --- An unexpected error occurred in the server ---\n\nMessage: RuntimeError: boom")
    assert "a handler failed" in caplog.text
    assert await rest.get(TENANTS) == ["public", "pulsar"]


async def test_a_change_is_answered_after_its_commit() -> None:
    storage = HeldStorage()
    answers: list[Answer] = []
    async with serving(storage=storage) as bed, trio.open_nursery() as nursery:
        rest = rest_of(bed)
        await rest.get(TENANTS)  # after this, no earlier commit is under way

        async def create(name: str) -> None:
            answers.append(await rest.call("PUT", f"{TENANTS}/{name}", TENANT))

        storage.holding = True
        nursery.start_soon(create, "kept")
        await wait_all_tasks_blocked()
        assert "kept" in bed.broker.metadata.tenants
        assert not answers
        storage.release()
        await wait_all_tasks_blocked()
        assert [answer.status for answer in answers] == [204]
        assert "/admin/policies/kept" in storage.metadata


async def test_a_change_that_cannot_be_kept_is_answered_500() -> None:
    storage = HeldStorage()
    async with serving(storage=storage) as bed, trio.open_nursery() as nursery:
        rest = rest_of(bed)
        await rest.get(TENANTS)  # after this, no earlier commit is under way
        answers: list[Answer] = []

        async def create() -> None:
            answers.append(await rest.call("PUT", f"{TOPICS}/t"))

        storage.holding = True
        nursery.start_soon(create)
        await wait_all_tasks_blocked()
        storage.fail()
        await wait_all_tasks_blocked()
        storage.release()
        assert answers[0].status == 500
        assert "the disk is full" in answers[0].reason


@pytest.mark.parametrize("force", ["TRUE", "true", "false", "1", ""])
async def test_flags_are_read_as_java_reads_them(rest: Rest, force: str) -> None:
    status, reason = await rest.refused("DELETE", f"{NAMESPACES}/nope/nope?force={force}")
    forced = (405, "Broker doesn't allow forced deletion of namespaces")
    assert (status, reason) == (forced if force.lower() == "true" else (404, "Namespace nope/nope does not exist."))


SMALL = {"name": "a", "list": [], "object": {"é": None}}
LARGE: list[Any] = [
    list(range(5 * AT_ONCE)),
    {str(number): SMALL for number in range(AT_ONCE)},
    {number: [number] for number in range(AT_ONCE)},
    {"some": [SMALL], "of": {"all": [{"deep": [SMALL] * AT_ONCE}, 1, [2]]}, "": {}},
    [[SMALL] * AT_ONCE, [], SMALL, [SMALL] * AT_ONCE],
]


@pytest.mark.parametrize("value", LARGE)
def test_pieces_are_what_json_is(value: Any) -> None:
    pieces = [*json_pieces(value)]
    assert b"".join(pieces) == json_bytes(value)
    assert len(pieces) > 3
    assert max(map(len, pieces)) < 40 * AT_ONCE


@pytest.mark.parametrize("value", [{}, [], SMALL, "text", None, 1])
def test_a_short_answer_is_whole(value: Any) -> None:
    assert json_reply(value) == HttpReply(200, json_bytes(value), "application/json")


def test_a_list_may_grow_between_two_pieces() -> None:
    value = {"list": [0] * 3 * AT_ONCE}
    pieces = json_pieces(value)
    begin = next(pieces)
    value["list"].append(1)
    value["more"] = []
    assert b"".join([begin, *pieces]) == json_bytes({"list": [0] * 3 * AT_ONCE + [1]})


def test_an_object_is_written_member_by_member() -> None:
    written, inner = WrittenJson(), WrittenJson()
    inner["x"] = [1]
    members: dict[str, Any] = {"small": SMALL, "large": LARGE[0], "inner": inner, "empty": WrittenJson()}
    for name, value in members.items():
        written[name] = value
    whole = json_bytes({"small": SMALL, "large": LARGE[0], "inner": {"x": [1]}, "empty": {}})
    assert b"".join(json_pieces({"it": written, "is": 1})) == b'{"it":' + whole + b',"is":1}'


async def test_others_have_their_turn_between_two_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE", 0)
    pieces = [*json_pieces(LARGE[0])]
    with passes_of_the_loop() as passes:
        assert b"".join(await gathered(pieces)) == json_bytes(LARGE[0])
    assert passes.number >= len(pieces)


async def test_the_topic_of_a_path_is_parsed_once(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = f"{ADMIN}/persistent/public/default/t"
    await rest.done("PUT", topic)
    parsed = []

    def parse(text: str) -> TopicName:
        parsed.append(text)
        return TopicName.parse(text)

    monkeypatch.setattr(call, "TopicName", SimpleNamespace(parse=parse))
    await rest.get(f"{topic}/internalStats")
    assert parsed == ["persistent://public/default/t"]
