"""REST calls of /lab/faults."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from pulsarium.broker.lab.faults import ACTIONS, FaultError
from pulsarium.broker.lab.faults.text import action_from_json, action_to_json
from tests.broker.lab.attended import is_attended
from tests.broker.web.admin.rest import Rest
from tests.broker.wire import Bed, Type, Wire, plain

ROOT = "/lab/faults"
DROP = {"command": "SEND", "action": {"kind": "drop"}}


async def add(rest: Rest, **rule: Any) -> Any:
    answer = await rest.call("POST", ROOT, DROP | rule)
    assert answer.status == 200, answer
    return answer.json


async def test_a_rule_is_added_with_all_its_selectors(rest: Rest, sender: Wire) -> None:
    added = await add(rest, stage="after", topic="t*", namespace="public/default", clientVersion="w*", seed=3)
    assert added == {
        "id": 1,
        "command": "SEND",
        "action": {"kind": "drop"},
        "sender": "client",
        "stage": "after",
        "topic": "t*",
        "namespace": "public/default",
        "clientVersion": "w*",
        "producer": "*",
        "consumer": "*",
        "subscription": "*",
        "broker": None,
        "when": None,
        "skip": 0,
        "every": 1,
        "count": 1,
        "probability": 1.0,
        "seed": 3,
        "hits": 0,
        "matched": 0,
        "spent": False,
    }
    await sender.write(sender.sends(plain(b"a")))
    await sender.quiet()
    done = added | {"hits": 1, "matched": 1, "spent": True}
    assert await rest.get(f"{ROOT}/1") == done
    assert await rest.get(ROOT) == [done]


async def test_a_shown_fault_can_be_added_again(rest: Rest) -> None:
    shown = await add(rest, action={"kind": "delay", "seconds": 2}, command="*", count=None)
    for name in ("id", "hits", "matched", "spent"):
        del shown[name]
    again = await add(rest, **shown)
    assert again == shown | {"id": 2, "hits": 0, "matched": 0, "spent": False}


async def test_an_expression_selects_frames(rest: Rest, sender: Wire) -> None:
    shown = await add(rest, when="payload_size > 2", count=None)
    assert shown["when"] == "payload_size > 2"
    await sender.write(sender.sends(plain(b"a"), plain(b"long"), plain(b"b")))
    await sender.receipts(1)
    assert (await rest.get(f"{ROOT}/1"))["hits"] == 1


async def test_one_rule_or_all_rules_are_removed(rest: Rest, bed: Bed) -> None:
    for _ in range(3):
        await add(rest)
    assert (await rest.call("DELETE", f"{ROOT}/2")).status == 204
    assert [each["id"] for each in await rest.get(ROOT)] == [1, 3]
    assert await rest.refused("DELETE", f"{ROOT}/2") == (404, "There is no fault 2; there are 1, 3")
    assert (await rest.call("DELETE", ROOT)).status == 204
    assert await rest.get(ROOT) == []
    assert not is_attended(bed.broker.cluster)


async def test_a_wait_ends_at_the_asked_number_of_hits(rest: Rest, sender: Wire) -> None:
    await add(rest, count=2)
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def wait() -> None:
            assert (await rest.get(f"{ROOT}/1/wait?n=2&timeout=3600"))["hits"] == 2

        await trio.sleep(20)
        await sender.write(sender.sends(plain(b"a"), plain(b"b")))
    assert (await rest.get(f"{ROOT}/1/wait"))["hits"] == 2
    status, reason = await rest.refused("GET", f"{ROOT}/1/wait?n=3")
    assert (status, reason) == (400, "fault 1 acts at most 2 times, not 3")
    await add(rest)
    refused = await rest.refused("GET", f"{ROOT}/2/wait?timeout=5")
    assert refused == (408, "fault 2 has acted 0 times after 5 s, not 1 times")
    assert (await rest.refused("GET", f"{ROOT}/2/wait?timeout=soon"))[0] == 400
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def wait_longer() -> None:
            assert (await rest.refused("GET", f"{ROOT}/2/wait"))[0] == 410

        await trio.sleep(1)
        await rest.call("DELETE", ROOT)


async def test_an_observing_rule_counts_without_a_limit(rest: Rest, wire: Wire) -> None:
    rule = await add(rest, command="PING", action="observe", sender="client")
    assert rule["count"] is None
    await wire.alive()
    await wire.send(Type.PING)
    await wire.rest()
    assert (await rest.get(f"{ROOT}/1"))["hits"] == 2


@pytest.mark.parametrize("number", ["0", "x", "-1", "99999999999", "1%2F2"])
async def test_there_is_no_such_rule(rest: Rest, number: str) -> None:
    assert (await rest.refused("GET", f"{ROOT}/{number}"))[0] == 404


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (None, "a fault is a JSON object with command, action, sender"),
        ([], "a fault is a JSON object"),
        ({"command": "SEND"}, "a fault needs action"),
        ({"action": "drop"}, "a fault needs command"),
        (DROP | {"subject": 1}, "a fault has no 'subject'; it has command, action, sender"),
        (DROP | {"action": {"kind": "break"}}, "no action 'break'; there are answer, drop"),
        (DROP | {"action": {"seconds": 1}}, "no action None; there are"),
        (DROP | {"action": {"kind": []}}, r"no action []"),
        (DROP | {"action": 5}, "action is a JSON object with kind"),
        (DROP | {"action": {"kind": "drop", "seconds": 1}}, "the action drop has no 'seconds'; it has no other field"),
        (DROP | {"action": {"kind": "delay", "second": 1}}, "the action delay has no 'second'; it has seconds"),
        (DROP | {"action": {"kind": "delay", "seconds": "1"}}, "seconds is '1'; it must be a whole number or a number"),
        (DROP | {"action": {"kind": "delay", "seconds": True}}, "seconds is True"),
        (DROP | {"action": {"kind": "answer", "error": "Nonsense"}}, "no error 'Nonsense'; there are UnknownError"),
        (DROP | {"action": {"kind": "answer", "error": None}}, "error is None; it must be a whole number or a text"),
        (DROP | {"command": "NOTHING"}, "no command 'NOTHING'; there are ACK"),
        (DROP | {"command": ["SEND"]}, "command is ['SEND']; it must be a text"),
        (DROP | {"count": 1.5}, "count is 1.5; it must be a whole number or null"),
        (DROP | {"broker": 4}, "broker is 4; there are 0 to 0"),
        (DROP | {"command": "FLOW", "stage": "after"}, "FLOW has no answer"),
    ],
)
async def test_a_wrong_fault_is_named_over_rest(rest: Rest, body: Any, says: str) -> None:
    status, reason = await rest.refused("POST", ROOT, body)
    assert status == 400
    assert says in reason
    assert await rest.get(ROOT) == []


@pytest.mark.parametrize("kind", ACTIONS)
def test_every_action_has_its_json(kind: str) -> None:
    action = action_from_json({"kind": kind})
    assert action == ACTIONS[kind]()
    assert action_from_json(action_to_json(action)) == action
    with pytest.raises(FaultError, match="has no 'x'"):
        action_from_json({"kind": kind, "x": 1})
