"""Faults of every command, by name, in the direction in which the command goes."""

from __future__ import annotations

import pytest

from pulsarium.broker.cluster import Broker
from pulsarium.broker.commands.answers import ABOUT_THE_CONNECTION, can_be_refused, has_answer
from pulsarium.broker.lab.faults import Answer, Close, Drop, Duplicate, FaultError, Faults
from pulsarium.broker.session.session import Session, Sessions, sessions_of
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.commands.minimal import at_work, command_of, name_of
from tests.broker.wire import Bed, Type, Wire, frame_of, plain
from yardsticks.bench.minimal import FROM_CLIENTS, ID

FROM_BROKERS = [spec for spec in COMMANDS.values() if spec.direction is not Direction.CLIENT]


def handled(broker: Broker, spec: CommandSpec) -> bool:
    return spec.type in broker.cluster.attached(Sessions).handlers(broker.profile)


async def answers_to(wire: Wire, spec: CommandSpec) -> list[pb.BaseCommand]:
    """Send the command and a PING, and return all that follows except the last PONG."""
    entry = plain(b"a") if spec.type == Type.SEND else b""
    await wire.write(frame(command_of(spec).SerializeToString(), entry) + frame_of(Type.PING))
    answers = [received.command for received in await wire.rest()]
    pongs = [each for each in answers if each.type == Type.PONG]
    if not wire.ended:
        answers.remove(pongs[-1])
    return answers


@pytest.mark.parametrize("spec", FROM_CLIENTS, ids=name_of)
async def test_a_command_is_lost(faults: Faults, bed: Bed, spec: CommandSpec) -> None:
    wire = await at_work(bed, spec)
    rule = faults.add(Drop(), spec.name, sender="client")
    assert await answers_to(wire, spec) == []
    assert rule.hits == 1
    assert not wire.ended


@pytest.mark.parametrize("spec", FROM_CLIENTS, ids=name_of)
async def test_the_connection_is_closed_instead_of_a_command(faults: Faults, bed: Bed, spec: CommandSpec) -> None:
    wire = await at_work(bed, spec)
    rule = faults.add(Close(), spec.name, sender="client")
    assert await answers_to(wire, spec) == []
    assert rule.hits == 1
    assert wire.ended


@pytest.mark.parametrize("spec", FROM_CLIENTS, ids=name_of)
async def test_a_command_is_refused(faults: Faults, bed: Bed, spec: CommandSpec) -> None:
    wire = await at_work(bed, spec)
    if not can_be_refused(spec):
        with pytest.raises(FaultError, match="has no answer"):
            faults.add(Answer("TooManyRequests"), spec.name, sender="client")
        return
    rule = faults.add(Answer("TooManyRequests", "m"), spec.name)
    (answer,) = await answers_to(wire, spec)
    assert rule.hits == 1
    body = getattr(answer, COMMANDS[answer.type].field)
    told = {field.name: value for field, value in body.ListFields()}
    assert told.get("error", told.get("error_code")) == pb.TooManyRequests
    assert told.get("message", told.get("error_message")) == "m"
    if "request_id" in told:
        assert told["request_id"] == (2**64 - 1 if spec.type in ABOUT_THE_CONNECTION else ID)
    assert wire.ended == (spec.type in ABOUT_THE_CONNECTION)


@pytest.mark.parametrize("spec", FROM_CLIENTS, ids=name_of)
async def test_an_answer_is_lost(faults: Faults, bed: Bed, spec: CommandSpec) -> None:
    wire = await at_work(bed, spec)
    if not has_answer(spec):
        with pytest.raises(FaultError, match="has no answer"):
            faults.add(Drop(), spec.name, sender="client", stage="after")
        return
    if not handled(bed.broker, spec):
        return
    rule = faults.add(Drop(), spec.name, sender="client", stage="after")
    assert [each for each in await answers_to(wire, spec) if each.type == spec.reply] == []
    assert rule.hits == 1
    assert not wire.ended
    if spec.type == Type.CONNECT:
        return
    assert await answers_to(wire, spec)  # the rule has ended after one hit


@pytest.mark.parametrize("spec", FROM_CLIENTS, ids=name_of)
async def test_the_connection_is_closed_instead_of_an_answer(faults: Faults, bed: Bed, spec: CommandSpec) -> None:
    if not (has_answer(spec) and handled(bed.broker, spec)):
        return
    wire = await at_work(bed, spec)
    rule = faults.add(Close(), spec.name, sender="client", stage="after")
    answers = await answers_to(wire, spec)
    assert wire.ended
    assert rule.hits == 1
    assert all(each.type not in (spec.reply, Type.ERROR) for each in answers if each.type != Type.PONG)


def session_of(bed: Bed) -> Session:
    (session,) = sessions_of(bed.broker)
    return session


@pytest.mark.parametrize("spec", FROM_BROKERS, ids=name_of)
async def test_faults_drop_duplicate_and_close_at_each_command_of_the_broker(
    faults: Faults, bed: Bed, wire: Wire, spec: CommandSpec
) -> None:
    session, command = session_of(bed), command_of(spec)
    with faults.add(Drop(), spec.name, sender="broker"):
        session.command(command)
        await wire.quiet()
    with faults.add(Duplicate(), spec.name, sender="broker"):
        session.command(command)
        assert [each.command for each in await wire.rest()] == [command, command]
    rule = faults.add(Close(), spec.name, sender="broker")
    session.command(command)
    assert await wire.closed() == []
    assert rule.hits == 1
