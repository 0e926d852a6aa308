"""The acts on a lab: what was done, by whom, what it has hit, and how to undo it."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.acts import KEPT
from pulsarium.broker.lab.explore.explorer import Explorer, PlannedRun
from pulsarium.broker.lab.explore.plan import Seeded
from pulsarium.broker.lab.faults.actions import Drop
from pulsarium.broker.lab.masks import Mask
from pulsarium.broker.model.news import acting_for
from tests.broker.web.admin.rest import NAMESPACES, TOPICS, Rest
from tests.broker.wire import Bed, Wire, plain


@pytest.fixture
def lab(bed: Bed) -> Lab:
    return bed.broker.cluster.attached(Lab)


async def timeline(rest: Rest) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await rest.get("/lab/live"))["timeline"]
    return found


async def test_acts_are_shown_in_order_the_newest_first(rest: Rest, lab: Lab) -> None:
    lab.faults.add(Drop(), "SEND", topic="orders*")
    lab.clock.freeze()
    newest, oldest = await timeline(rest)
    assert (oldest["number"], oldest["what"], oldest["topic"]) == (1, "added fault 1: drop SEND of orders*", "orders*")
    assert (newest["number"], newest["what"], newest["topic"]) == (2, "froze the clock", None)
    assert newest["commandLine"] == "pulsarium clock freeze"
    assert newest["ms"] == lab.clock.now_ms()


async def test_an_act_shows_how_often_it_has_hit(rest: Rest, sender: Wire, lab: Lab) -> None:
    lab.faults.add(Drop(), "SEND", count=2)
    await sender.write(sender.sends(plain(b"1"), plain(b"2"), plain(b"3")))
    await sender.receipts(1)
    assert [each["hits"] for each in await timeline(rest)] == [2]


async def test_a_mask_shows_how_many_connections_have_it(rest: Rest, bed: Bed, lab: Lab) -> None:
    lab.masks.add(Mask(max_protocol_version=12))
    await bed.connect()
    assert [(each["what"], each["hits"]) for each in await timeline(rest)] == [("added mask 1", 1)]


UNDONE = {
    "fault": lambda lab: lab.faults.add(Drop(), "SEND"),
    "mask": lambda lab: lab.masks.add(Mask(max_protocol_version=12)),
    "capture": lambda lab: lab.captures.start(),
    "clock": lambda lab: lab.clock.freeze(),
    "clock of a namespace": lambda lab: lab.clock.of("public/default").freeze(),
}


@pytest.mark.parametrize("what", UNDONE)
async def test_an_act_is_undone_by_its_call_and_then_cannot_be_again(rest: Rest, lab: Lab, what: str) -> None:
    UNDONE[what](lab)
    (act,) = await timeline(rest)
    answer = await rest.call(act["undo"]["method"], act["undo"]["path"])
    assert answer.status < 300
    *_, act = await timeline(rest)
    assert act["undo"] is None


async def test_an_advance_is_undone_by_the_machines_time(rest: Rest, lab: Lab) -> None:
    await rest.call("POST", "/lab/clock/advance", {"seconds": 3600})
    (act,) = await timeline(rest)
    assert (act["what"], act["commandLine"]) == ("advanced the clock by 3600 s", "pulsarium clock advance 3600s")
    assert act["undo"] == {"method": "POST", "path": "/lab/clock/reset"}
    lab.clock.reset()
    assert [(each["what"], each["undo"]) for each in await timeline(rest)] == [
        ("returned the clock to the machine's time", None),
        ("advanced the clock by 3600 s", None),
    ]


@pytest.mark.parametrize(("header", "by"), [("console", "person"), ("test", "test"), ("", "program"), ("x", "program")])
async def test_the_header_of_a_request_says_who_acts(rest: Rest, header: str, by: str) -> None:
    await rest.call("POST", "/lab/clock/freeze", x_pulsarium_by=header)
    assert [each["by"] for each in await timeline(rest)] == [by]


async def test_who_acts_in_python_can_be_said(rest: Rest, lab: Lab) -> None:
    lab.clock.freeze()
    with acting_for("exploration"):
        lab.clock.resume()
    lab.acts.usually = "test"
    lab.clock.freeze()
    assert [each["by"] for each in await timeline(rest)] == ["test", "exploration", "program"]


async def test_a_reset_notes_what_it_removes(rest: Rest, lab: Lab) -> None:
    lab.faults.add(Drop(), "SEND")
    lab.masks.add(Mask(max_protocol_version=12))
    await rest.call("POST", "/lab/reset")
    assert [each["what"] for each in await timeline(rest)][:3] == [
        "removed mask 1",
        "removed fault 1: drop SEND",
        "deleted everything",
    ]


async def test_the_rules_of_an_exploration_are_no_acts(rest: Rest, lab: Lab) -> None:
    explorer = Explorer(lab, PlannedRun(Seeded("1", {}, {})))
    async with trio.open_nursery() as nursery:
        await nursery.start(explorer.run)
        assert lab.faults.rules
        explorer.end()
        nursery.cancel_scope.cancel()
    assert await timeline(rest) == []


async def test_only_the_latest_acts_are_kept(rest: Rest, lab: Lab) -> None:
    for _ in range(KEPT):
        lab.clock.freeze()
        lab.clock.resume()
    acts = await timeline(rest)
    assert (len(acts), acts[0]["number"]) == (KEPT, 2 * KEPT)


async def test_topics_that_one_call_unloads_are_one_act(rest: Rest) -> None:
    for name in ("a", "b", "c"):
        await rest.done("PUT", f"{TOPICS}/{name}")
    await rest.done("PUT", f"{TOPICS}/a/unload")
    (act,) = await timeline(rest)
    assert (act["what"], act["topic"], act["by"]) == (
        "unloaded persistent://public/default/a",
        "persistent://public/default/a",
        "program",
    )
    await rest.call("POST", "/lab/clock/freeze")
    await rest.done("PUT", f"{NAMESPACES}/public/default/unload")
    newest, *_ = await timeline(rest)
    assert newest["what"] == "unloaded 2 topics"
