"""No command is met with silence: each is handled, refused, or closes the connection with a reason."""

from __future__ import annotations

from types import ModuleType

import pytest

from pulsarium.broker.commands import MODULES, handlers
from pulsarium.broker.commands.registry import collect, declared, handles
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction
from pulsarium.proto.framing import frame
from tests.broker.commands.minimal import minimal_command
from tests.broker.wire import Bed, Type, Wire, frame_of

FROM_CLIENTS = [spec for spec in COMMANDS.values() if spec.direction is not Direction.BROKER]
# What needs no answer: there is nobody to give permits to, or nothing to say.
SILENT = {Type.PONG, Type.FLOW, Type.ACK, Type.REDELIVER_UNACKNOWLEDGED_MESSAGES}


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
        assert spec.type in bed.broker.handlers
        assert Type.PONG in answers
        assert len(answers) == 1 + (spec.type not in SILENT)
    await bystander.alive()


@pytest.mark.req("W-10")
def test_only_what_the_release_does_not_know_has_no_handler() -> None:
    absent = {spec.type for spec in FROM_CLIENTS} - handlers(connected=True).keys()
    assert absent <= set(range(70, 82))


def test_what_is_not_built_yet_says_why() -> None:
    for handled, handler in declared(MODULES):
        if COMMANDS[handled.command].family == "transaction":
            assert "not built yet" in handled.absent, handler


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
