"""The linter in a broker: what it judges, what it ignores, and what it costs.

Programs of the rules about clients: the linter finds the rule that each breaks, and nothing once the program is mended.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pulsarium.broker.config import profile_of
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.faults import Corrupt, Drop, Duplicate, Reorder
from pulsarium.broker.lab.linter import KEPT
from pulsarium.capture.lint.checker import ALL_RULES, BrokenRule
from pulsarium.capture.lint.scalable_rules import SCALABLE_RULES
from pulsarium.proto.commands import Direction
from tests.broker.lab.attended import is_attended
from tests.broker.lab.linter_programs import PROGRAMS
from tests.broker.lab.linter_programs.program import Client, message, send
from tests.broker.web.admin.rest import rest_of
from tests.broker.wire import TOPIC, Bed, Exclusive, Type, Wire, frame_of, message_id, serving


@pytest.fixture
async def bed(autojump_clock: object) -> AsyncIterator[Bed]:
    async with serving() as here:
        yield here


@pytest.fixture
def lab(bed: Bed) -> Lab:
    return bed.broker.cluster.attached(Lab)


def rules(lab: Lab) -> list[str]:
    return [each.rule for each in lab.linter.violations()]


async def closes_and_acknowledges(bed: Bed) -> None:
    """Break ack-not-delivered: acknowledge a message that was never sent."""
    wire, _ = await Client(bed).consuming(message())
    await wire.send(Type.ACK, consumer_id=0, ack_type=0, message_id=[{"ledgerId": 7, "entryId": 99}])
    await wait_all_tasks_blocked()


async def test_a_finding_says_all_there_is(bed: Bed, lab: Lab) -> None:
    lab.linter.start()
    await closes_and_acknowledges(bed)
    (found,) = lab.linter.violations()
    assert found.detail == "7:99 was never sent to 'sub'"
    assert (found.side, found.severity, found.command, found.topic) == ("client", "error", "ACK", TOPIC)
    assert (found.client, found.client_version, found.connection) == ("wire", "", 1)
    assert abs(found.at_ms - bed.broker.clock.now_ms()) < 10_000
    where = f"connection 1, frame {found.frame}, {TOPIC}"
    assert str(found) == f"client error ack-not-delivered: 7:99 was never sent to 'sub' (wire; {where})"
    assert BrokenRule.from_json(found.to_json()) == found


async def test_the_linter_judges_only_while_it_runs(bed: Bed, lab: Lab) -> None:
    await closes_and_acknowledges(bed)
    assert rules(lab) == []
    assert not is_attended(bed.broker.cluster)
    lab.linter.start()
    lab.linter.start()
    wire = await bed.connect()
    await wire.send(Type.PONG)
    await wait_all_tasks_blocked()
    assert rules(lab) == ["pong-unasked"]
    lab.linter.stop()
    await wire.send(Type.PONG)
    await wire.alive()
    assert rules(lab) == ["pong-unasked"]
    assert not is_attended(bed.broker.cluster)
    lab.linter.clear()
    assert rules(lab) == []
    assert not lab.linter.counts


async def test_connections_from_before_the_linter_are_not_judged(bed: Bed, lab: Lab) -> None:
    """An ACK on a new connection is not judged either when the earlier connection may have received the message."""
    before, (first,) = await Client(bed).consuming(message())
    lab.linter.start()
    await before.send(Type.PONG)
    now = await bed.connect()
    await now.subscribe(type=1, consumer_id=3)
    await now.send(Type.ACK, consumer_id=3, ack_type=0, message_id=[message_id(first.position)])
    await now.send(Type.PONG)
    await now.alive()
    assert rules(lab) == ["pong-unasked"]


async def test_of_each_rule_the_first_are_kept(bed: Bed, lab: Lab) -> None:
    lab.linter.start()
    wire = await bed.connect()
    await wire.write(frame_of(Type.PONG) * (KEPT + 50))
    await wire.alive()
    assert rules(lab) == ["pong-unasked"] * KEPT
    assert lab.linter.counts == {"pong-unasked": KEPT + 50}


async def test_a_connection_that_ended_leaves_nothing(bed: Bed, lab: Lab) -> None:
    lab.linter.start()
    for _ in range(3):
        await (await bed.connect()).aclose()
    await wait_all_tasks_blocked()
    assert lab.linter._checkers == {}


# clients and faults


async def lost(bed: Bed, lab: Lab) -> None:
    """Drop the receipt of a producer that then sends another message."""
    lab.faults.add(Drop(), "SEND_RECEIPT")
    wire = await Client(bed).producing(user_provided_producer_name=False)
    await send(wire, 0)
    await send(wire, 1, message(1))
    await wire.expect(Type.SEND_RECEIPT)


async def unanswered(bed: Bed, lab: Lab) -> None:
    """Drop a request, and keep the connection open for five seconds."""
    lab.faults.add(Drop(), "LOOKUP")
    wire = await bed.connect()
    await wire.send(Type.LOOKUP, topic=TOPIC, request_id=1)
    await trio.sleep(5)
    await wire.aclose()


async def unheard(bed: Bed, lab: Lab) -> None:
    """Drop all PINGs of the broker. The client owes no PONG for them."""
    lab.faults.add(Drop(), "PING", sender="broker", count=None)
    wire = await bed.connect()
    await wire.closed(within=70)


async def doubled(bed: Bed, lab: Lab) -> None:
    lab.faults.add(Duplicate(), "SEND")
    wire = await Client(bed).producing(user_provided_producer_name=False)
    await send(wire, 0)
    await send(wire, 1, message(1))


async def swapped(bed: Bed, lab: Lab) -> None:
    lab.faults.add(Reorder(), "SEND")
    wire = await Client(bed).producing(user_provided_producer_name=False)
    for number in range(3):
        await send(wire, number, message(number))


async def corrupted(bed: Bed, lab: Lab) -> None:
    lab.faults.add(Corrupt("checksum"), "SEND")
    await send(await Client(bed).producing())


async def misread(bed: Bed, lab: Lab) -> None:
    """Send a damaged entry to a consumer, which then asks for redelivery."""
    lab.faults.add(Corrupt("checksum"), "MESSAGE")
    wire = await Client(bed).producing()
    await wire.subscribe(type=Exclusive)
    await wire.flow()
    await send(wire)
    await wire.rest()
    await wire.redeliver()


@pytest.mark.parametrize("scene", [lost, unanswered, unheard, doubled, swapped, corrupted, misread])
async def test_the_linter_blames_no_client_for_a_fault(scene: object, bed: Bed, lab: Lab) -> None:
    lab.linter.start()
    await scene(bed, lab)  # type: ignore[operator]
    await wait_all_tasks_blocked()
    assert sum(each.hits for each in lab.faults.rules) > 0
    assert lab.linter.violations() == []


async def test_beside_a_fault_clients_are_judged_on(bed: Bed, lab: Lab) -> None:
    lab.linter.start()
    lab.faults.add(Drop(), "SEND_RECEIPT")
    wire = await Client(bed).producing()
    await send(wire)
    await send(wire, 1, message(1), num_messages=4)
    await wire.expect(Type.SEND_RECEIPT)
    assert rules(lab) == ["num-messages-mismatch"]


async def test_a_clock_that_jumps_makes_no_client_late(bed: Bed, lab: Lab) -> None:
    """Rules about time use the machine's clock, by which clients wait."""
    lab.linter.start()
    wire = await Client(bed).producing()
    await Client(bed).unload(wire, Type.CLOSE_PRODUCER)
    await lab.clock.advance(86_400)
    await send(wire)
    await wire.alive()
    assert rules(lab) == []


async def test_a_consumer_that_is_closed_answers_nothing(bed: Bed, lab: Lab) -> None:
    """The broker owes no answer to a GET_LAST_MESSAGE_ID once it has closed the consumer."""
    lab.linter.start()
    lab.faults.add(Drop(), "GET_LAST_MESSAGE_ID_RESPONSE")
    wire, _ = await Client(bed).consuming(message())
    await wire.send(Type.GET_LAST_MESSAGE_ID, consumer_id=0, request_id=88)
    await Client(bed).unload(wire, Type.CLOSE_CONSUMER)
    await trio.sleep(5)
    await wire.aclose()
    await wait_all_tasks_blocked()
    assert rules(lab) == []


# REST


async def test_the_linter_is_asked_over_http(bed: Bed, lab: Lab) -> None:
    rest = rest_of(bed)
    assert await rest.get("/lab/violations") == {"running": False, "counts": {}, "violations": []}
    started = await rest.call("POST", "/lab/violations/start")
    assert (started.status, started.json["running"]) == (200, True)
    await closes_and_acknowledges(bed)
    said = await rest.get("/lab/violations")
    assert said["counts"] == {"ack-not-delivered": 1}
    (found,) = said["violations"]
    assert found["rule"] == "ack-not-delivered"
    assert found["mend"]
    assert (await rest.call("DELETE", "/lab/violations")).status == 204
    stopped = await rest.call("POST", "/lab/violations/stop")
    assert stopped.json == {"running": False, "counts": {}, "violations": []}


async def garbage(wire: Wire) -> None:
    await wire.write(b"\x00\x00\x00\x05\x00\x00\x00\x01\xff")


async def test_garbage_breaks_a_rule_and_nothing_else(bed: Bed, lab: Lab) -> None:
    lab.linter.start()
    await garbage(bed.dial())
    await wait_all_tasks_blocked()
    assert rules(lab) == ["broken-frame"]
    await (await bed.connect()).alive()


MOST = 60  # the least number of rules about clients


def test_each_rule_about_clients_has_a_program() -> None:
    """The rules of scalable topics have tests of their own: tests/capture/lint/test_scalable_rules.py."""
    wanted = {name for name, each in ALL_RULES.items() if each.about is not Direction.BROKER}
    wanted -= {each.name for each in SCALABLE_RULES.rules}
    assert PROGRAMS.keys() == wanted
    assert len(wanted) >= MOST


@pytest.mark.parametrize("mended", [False, True], ids=["broken", "mended"])
@pytest.mark.parametrize("rule", PROGRAMS)
async def test_each_program_breaks_its_rule_until_it_is_mended(rule: str, mended: bool, autojump_clock: object) -> None:
    program = PROGRAMS[rule]
    async with serving(program.config(), profile=profile_of("pip", pip=program.pip)) as bed:
        lab = bed.broker.cluster.attached(Lab)
        lab.linter.start()
        await program.run(Client(bed), mended)
        await wait_all_tasks_blocked()
        found = [(each.rule, each.side, each.severity) for each in lab.linter.violations()]
    assert found == ([] if mended else [(rule, "client", ALL_RULES[rule].severity.value)])
