"""Handlers of commands: each command is handled, refused, or closes the connection with a reason."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from pulsarium.broker.commands import MODULES, handlers
from pulsarium.broker.commands.registry import collect, declared, handles
from pulsarium.broker.config.profile import BROUGHT_BY_5_0, DRAFTS, PULSAR_4_2, profile_of
from pulsarium.broker.config.proposals import PROPOSALS
from pulsarium.broker.session.session import Sessions
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Bed, Type, Wire, frame_of
from yardsticks.bench.minimal import minimal_command

PAGE = (Path(__file__).parents[3] / "docs" / "commands.md").read_text()
FROM_CLIENTS = [spec for spec in COMMANDS.values() if spec.direction is not Direction.BROKER]
# Commands without an answer: their consumer does not exist, or the broker has nothing to say.
SILENT = {
    *(Type.PONG, Type.FLOW, Type.ACK, Type.REDELIVER_UNACKNOWLEDGED_MESSAGES),
    *(Type.SCALABLE_TOPIC_CLOSE, Type.WATCH_SCALABLE_TOPICS_CLOSE, Type.WATCH_TC_ASSIGNMENTS_CLOSE),
}


def name_of(spec: CommandSpec) -> str:
    return spec.name


@pytest.mark.req("W-10")
@pytest.mark.parametrize("spec", FROM_CLIENTS, ids=name_of)
async def test_every_command_is_answered_or_closes(
    bed: Bed, wire: Wire, spec: CommandSpec, caplog: pytest.LogCaptureFixture
) -> None:
    bystander = await bed.connect()
    await wire.write(frame(minimal_command(spec.type).SerializeToString()) + frame_of(Type.PING))
    answers = [received.command.type for received in await wire.rest()]
    assert "a command failed" not in caplog.text
    if wire.ended:
        assert "closing connection" in caplog.text
        assert set(answers) <= {Type.ERROR}
    else:
        assert spec.type in bed.broker.cluster.attached(Sessions).handlers(bed.broker.profile)
        assert Type.PONG in answers
        assert len(answers) == 1 + (spec.type not in SILENT)
    await bystander.alive()


@pytest.mark.req("W-10")
@pytest.mark.parametrize("name", pb.BaseCommand.Type.keys())
def test_each_command_of_a_client_has_a_handler_and_a_row_in_the_docs(name: str) -> None:
    number = pb.BaseCommand.Type.Value(name)
    found = [handled for handled, _ in declared(MODULES) if handled.command == number]
    assert len(found) == (COMMANDS[number].direction is not Direction.BROKER)
    assert f"| {number} | {name} |" in PAGE


@pytest.mark.req("W-10")
def test_a_release_knows_no_more_than_it_did() -> None:
    taken = {spec.name for spec in FROM_CLIENTS}
    every = profile_of("pip", pip=PROPOSALS)
    assert {COMMANDS[number].name for number in handlers(connected=True, profile=every)} == taken
    assert {COMMANDS[number].name for number in handlers(connected=True)} == taken - DRAFTS
    released = handlers(connected=True, profile=PULSAR_4_2)
    assert {COMMANDS[number].name for number in released} == taken - DRAFTS - BROUGHT_BY_5_0


def test_no_command_has_two_handlers() -> None:
    module = ModuleType("twice")

    @handles(Type.PING)
    @handles(Type.PONG, before_connect=True)
    def one(session: object, cmd: object, trailing: bytes) -> None: ...

    @handles(Type.PING)
    def another(session: object, cmd: object, trailing: bytes) -> None: ...

    one.__module__ = another.__module__ = "twice"
    module.one = one  # type: ignore[attr-defined]
    assert set(collect([module], connected=True)) == {Type.PING, Type.PONG}
    assert set(collect([module], connected=False)) == {Type.PONG}
    module.another = another  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="two handlers"):
        collect([module], connected=True)
