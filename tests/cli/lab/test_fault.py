"""`pulsarium fault`, against a broker of this process."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import trio
from click.testing import CliRunner, Result

from pulsarium.broker.lab import Lab, faults
from pulsarium.broker.lab.faults.text import ARGUMENTS
from pulsarium.cli.lab import fault as command_line
from pulsarium.cli.main import cli
from tests.broker.wire import Wire, plain
from tests.cli.admin.answering import Server, running
from tests.cli.admin.live import Live, live

server = pytest.fixture(running, name="server")

A = plain(b"a")


class Fault:
    """The command line of `pulsarium fault`, for a running broker."""

    def __init__(self, live: Live) -> None:
        self.live = live

    @property
    def faults(self) -> faults.Faults:
        lab = self.live.bed.broker.cluster.attached(Lab)
        return lab.faults

    async def run(self, *arguments: str) -> Result:
        line = ["fault", *arguments, "--admin-url", self.live.url]
        invoke = partial(CliRunner().invoke, cli, line, prog_name="pulsarium", catch_exceptions=False)
        return await trio.to_thread.run_sync(invoke)

    async def said(self, *arguments: str) -> str:
        result = await self.run(*arguments)
        assert (result.exit_code, result.stderr) == (0, ""), arguments
        return result.stdout

    async def sender(self) -> Wire:
        wire = await self.live.bed.connect()
        await wire.producer()
        return wire


@pytest.fixture
async def fault() -> AsyncIterator[Fault]:
    async with live() as here:
        yield Fault(here)


async def test_a_fault_loses_a_receipt(fault: Fault) -> None:
    sender = await fault.sender()
    said = await fault.said("add", "SEND", "drop", "--after-work", "--topic", "t*")
    assert said == (
        "id  command  action                which                   when  hits\n"
        "1   SEND     drop, after the work  topic=t* sender=client  once  0\n"
    )
    await sender.write(sender.sends(A))
    assert "hits\n1   SEND" in await fault.said("wait", "1")
    assert json.loads(await fault.said("list", "--json"))[0]["hits"] == 1
    assert await fault.said("remove", "1") == ""
    assert await fault.said("list") == "No faults. Add one: pulsarium fault add SEND drop --after-work --topic orders\n"
    assert fault.faults.rules == []


async def test_everything_that_can_be_said(fault: Fault) -> None:
    options: dict[str, Any] = {
        "topic": "t*",
        "client-version": "w*",
        "producer": "p*",
        "consumer": "c*",
        "subscription": "s*",
        "sender": "client",
        "broker": 0,
        "when": 'metadata.partition_key == "a" and payload_size > 100',
        "count": 7,
        "skip": 1,
        "every": 2,
        "probability": 0.5,
        "seed": 9,
        "seconds": 3.5,
    }
    line = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    said = await fault.said("add", "send", "delay", *line)
    assert "delay seconds=3.5" in said
    assert "7 times, after 1, 1 of 2, p=0.5 seed=9" in said
    (rule,) = fault.faults.rules
    assert rule.action == faults.Delay(3.5)
    assert (rule.selector.which["client_version"], rule.selector.which["when"]) == ("w*", options["when"])
    assert (rule.selector.which["broker"], rule.occurrence.every, rule.occurrence.seed) == (0, 2, 9)


@pytest.mark.parametrize(
    ("words", "action"),
    [
        (("answer", "--error", "ProducerBusy", "--message", "m"), faults.Answer("ProducerBusy", "m")),
        (("duplicate", "--times", "3"), faults.Duplicate(3)),
        (("corrupt", "--what", "byte"), faults.Corrupt("byte")),
        (("truncate", "--keep", "3"), faults.Truncate(3)),
        (("wrong-request-id",), faults.WrongRequestId()),
    ],
)
async def test_each_action_is_read_from_its_words(fault: Fault, words: tuple[str, ...], action: faults.Action) -> None:
    await fault.said("add", "SEND", *words, "--forever")
    (rule,) = fault.faults.rules
    assert rule.action == action
    assert rule.occurrence.count is None


async def test_a_wait_counts_hits_until_its_timeout(fault: Fault) -> None:
    sender = await fault.sender()
    await fault.said("observe", "SEND", "--topic", "t")
    await sender.publish(A, A)
    assert "always" in await fault.said("wait", "1", "--hits", "2")
    late = await fault.run("wait", "1", "--hits", "3", "--timeout", "0.01")
    assert late.exit_code == 1
    assert late.stderr.startswith("pulsarium: fault 1 has not acted 3 times within 0.01 s: ")
    assert late.stderr.count("\n") == 1


async def test_fault_refuses_what_cannot_be(fault: Fault) -> None:
    for line, says in (
        (("add", "FLOW", "drop", "--after-work"), "FLOW has no answer"),
        (("add", "NOTHING", "drop"), "no command 'NOTHING'; there are ACK"),
        (("add", "SNED", "drop"), "no command 'SNED'; did you mean SEND"),
        (("add", "SEND", "answer", "--error", "No"), "no error 'No'; there are UnknownError"),
        (("add", "SEND", "drop", "--seconds", "1"), "the action drop has no 'seconds'"),
        (("add", "SEND", "drop", "--when", "payload_sise > 1"), "no payload_sise; did you mean payload_size?"),
        (("add", "SEND", "explode"), "'explode' is not one of 'answer', 'drop'"),
        (("add", "SEND", "drop", "--forever", "--count", "2"), "not both"),
        (("remove",), "the IDs of the faults to remove, or --all"),
        (("remove", "5"), "There is no fault 5"),
        (("wait", "5"), "There is no fault 5"),
    ):
        result = await fault.run(*line)
        assert result.exit_code != 0, line
        assert says in result.stderr, line
    assert await fault.said("remove", "--all") == ""


@pytest.mark.parametrize(
    ("line", "path", "instead"),
    [
        ("fault list", "/lab/faults", "put `pulsarium proxy` in front of it"),
        ("clock show", "/lab/clock", "only a broker of Pulsarium can do this; start one with `pulsarium serve`"),
    ],
)
def test_a_broker_without_a_lab_is_named_with_what_helps(server: Server, line: str, path: str, instead: str) -> None:
    """Answer as Pulsar's servlet container answers to an unknown path."""
    server.answers[path] = 404, {"Content-Type": "application/json"}, b'{"message":"Not Found","status":"404"}'
    result = CliRunner().invoke(cli, [*line.split(), "--admin-url", server.url])
    helps = f"{server.url} has no lab, because it is no Pulsarium: {instead}"
    assert (result.exit_code, result.stderr) == (1, f"pulsarium: {helps}\n")


def test_the_command_line_knows_every_action_and_argument() -> None:
    assert list(command_line.ACTIONS) == list(faults.ACTIONS)
    fields = {field.name for action in faults.ACTIONS.values() for field in dataclasses.fields(action)}
    assert set(command_line.OF_ACTIONS) == fields
    options = {option.name for option in command_line.add.params} - {option.name for option in command_line.wait.params}
    arguments = {argument.name for argument in ARGUMENTS.values()} - {"stage"} | {"after_work", "forever"}
    assert options == arguments | fields | {"command", "action"}


def test_the_help_lists_every_action() -> None:
    text = CliRunner().invoke(cli, ["fault", "add", "--help"], prog_name="pulsarium").output
    assert "Actions:" in text
    for name, does in command_line.ACTIONS.items():
        assert f"  {name:17} {does}" in text
