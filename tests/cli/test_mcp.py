"""`pulsarium mcp`: tools of a coding assistant, called with the client of the protocol's own library."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import click
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from pulsarium.broker.testing import PulsarBroker, running
from pulsarium.cli.mcp import main
from pulsarium.cli.mcp.tools import TOOLS, Tool, WrongCall, input_name
from pulsarium.client import ConsumerType, InitialPosition, connect
from tests.broker.auth.secured import SECRET, TOKEN, base64_of, token
from tests.docs.blocks import ROOT, TESTED, blocks, matches

Earliest: Final = InitialPosition.Earliest
SECURED: Final = {
    "authenticationEnabled": True,
    "authenticationProviders": TOKEN,
    "authorizationEnabled": True,
    "tokenSecretKey": f"data:;base64,{base64_of(SECRET)}",
    "superUserRoles": "admin",
}
BROKER: Final = ("--admin-url=http://broker:8080",)


def line(tool: str, **given: Any) -> Sequence[str]:
    """Return the words of a call, of a tool that acts or not."""
    return TOOLS[tool].command_line(given, BROKER, acts=TOOLS[tool].acts)


# ---- a call is a command line


def test_arguments_stand_behind_the_options() -> None:
    words = ["tail", *BROKER, "--from=earliest", "--last=3", "--no-follow", "--output=json", "--", "orders"]
    assert line("tail", last=3, topic="orders", **{"from": "earliest"}) == words


def test_a_value_that_begins_with_a_dash_is_no_option() -> None:
    assert line("why", topic="--help")[-2:] == ["--", "--help"]
    assert "--containing=--live" in line("tail", topic="t", containing="--live")


def test_options_of_a_group_stand_before_its_command() -> None:
    words = line("clock_advance", namespace="public/a", duration="7d")
    assert words == ["clock", "--namespace=public/a", "advance", *BROKER, "--json", "--yes", "--", "7d"]


def test_a_group_takes_the_words_behind_its_name() -> None:
    words = ["admin", *BROKER, "topics", "stats", "orders"]
    assert line("admin", arguments=["topics", "stats", "orders"]) == words


@pytest.mark.parametrize("word", ["--admin-url=http://other", "--token", "--", "-h"])
def test_the_words_behind_a_group_are_no_options_of_the_group(word: str) -> None:
    with pytest.raises(WrongCall, match=f"^arguments of admin begin with a command.*not with {word}"):
        line("admin", arguments=[word, "brokers", "version"])
    assert line("admin", arguments=["--help"])[-1] == "--help"


def test_a_flag_that_is_false_is_left_out() -> None:
    assert line("topics", long=True) == ["topics", *BROKER, "--long", "--json"]
    assert line("topics", long=False) == ["topics", *BROKER, "--json"]


def test_an_unknown_input_is_refused_with_the_known_ones() -> None:
    with pytest.raises(WrongCall, match=r"^why does not take partition; it takes topic, subscription, message_id"):
        line("why", topic="orders", partition=1)


def test_an_input_that_is_needed_is_named() -> None:
    with pytest.raises(WrongCall, match=r"^wait needs topic, state$"):
        line("wait", subscription="billing")


@pytest.mark.parametrize("value", [["a"], {"a": 1}, None])
def test_an_input_of_another_shape_is_refused(value: object) -> None:
    with pytest.raises(WrongCall, match="topic takes one value"):
        line("why", topic=value)


def test_a_text_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(WrongCall, match="write a list of texts"):
        line("admin", arguments="topics list")


def test_a_client_has_the_credentials_of_the_server_and_looks_up_at_its_url() -> None:
    server = [*BROKER, "--token=hush", "--tls-trust-cert-path=ca.pem", "--request-timeout=5", "--read-only"]
    words = TOOLS["client_produce"].command_line({"topic": "t"}, server, acts=True)
    assert words == [
        *("client", "--url=http://broker:8080", "--token=hush", "--tls-trust-cert-path=ca.pem", "produce"),
        *("--", "t"),
    ]


# ---- the tools


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_every_tool_names_options_that_its_command_has(tool: Tool) -> None:
    params = [param for command in tool.chain for param in command.params]
    known = {input_name(each) for param in params for each in (*param.opts, *param.secondary_opts)}
    assert {*map(input_name, tool.fixed), *tool.without, *tool.acting} <= known


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_no_tool_of_a_command_offers_the_options_of_the_broker(tool: Tool) -> None:
    assert not {"admin_url", "token", "auth_params", "read_only", "help"} & set(tool.schema(acts=True)["properties"])


def test_the_schema_has_the_types_and_the_choices_of_the_command() -> None:
    properties = TOOLS["wait"].schema(acts=False)["properties"]
    assert properties["count"]["type"] == "integer"
    assert "caught-up" in properties["state"]["enum"]
    assert properties["timeout"]["type"] == "number"
    assert TOOLS["lint"].schema(acts=False)["properties"]["captures"] == {"type": "array", "items": {"type": "string"}}
    assert TOOLS["wait"].schema(acts=False)["required"] == ["topic", "state"]


def test_options_that_act_are_offered_with_the_acts_only() -> None:
    assert "start" not in TOOLS["lint"].schema(acts=False)["properties"]
    assert "start" in TOOLS["lint"].schema(acts=True)["properties"]


# ---- the server


@pytest.fixture(scope="module")
def broker() -> Iterator[PulsarBroker]:
    with running() as broker:
        yield broker


@asynccontextmanager
async def assistant(broker: PulsarBroker, *, acts: bool = False) -> AsyncIterator[Client]:
    server = main.server_of(broker.admin_url, [f"--admin-url={broker.admin_url}"], acts=acts)
    async with Client(server) as client:
        yield client


async def said(client: Client, tool: str, **given: Any) -> str:
    result = await client.call_tool(tool, given)
    (content,) = result.content
    assert not result.is_error, content
    return content.text  # type: ignore[union-attr]


async def refused(client: Client, tool: str, **given: Any) -> str:
    result = await client.call_tool(tool, given)
    (content,) = result.content
    assert result.is_error
    return content.text  # type: ignore[union-attr]


async def test_an_assistant_looks_at_a_topic(broker: PulsarBroker) -> None:
    async with assistant(broker, acts=True) as client:
        await said(client, "client_produce", messages=["first"], topic="looked-at")  # at the server's own broker
        row = json.loads(await said(client, "tail", topic="looked-at"))
        assert row["value"] == "first"
        assert "looked-at" in await said(client, "topics")


async def test_a_call_leads_the_credentials_to_no_other_broker(broker: PulsarBroker) -> None:
    async with assistant(broker, acts=True) as client:
        given = {"topic": "looked-at", "messages": ["x"], "url": "pulsar://127.0.0.1:1"}
        assert "does not take url" in await refused(client, "client_produce", **given)
        await said(client, "client_produce", topic="--help", messages=["x"])  # a name, and no option


@pytest.mark.parametrize("role", ["admin", "nobody"])
async def test_a_message_is_published_with_the_credentials_of_the_server(role: str) -> None:
    secret = token(role)
    with running(set=SECURED) as broker:
        words = [f"--admin-url={broker.admin_url}", f"--token={secret}"]
        async with Client(main.server_of(broker.admin_url, words, acts=True)) as client:
            if role == "admin":
                await said(client, "client_produce", topic="t", messages=["x"])
            else:
                text = await refused(client, "client_produce", topic="t", messages=["x"])
                assert "AuthorizationError" in text
                assert secret not in text


async def test_without_acts_no_tool_that_acts_is_there(broker: PulsarBroker) -> None:
    async with assistant(broker) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {name for name, tool in TOOLS.items() if not tool.acts}
        assert "--allow-acts" in await refused(client, "state_reset")
        assert await refused(client, "nothing") == "there is no tool nothing"


async def test_without_acts_a_command_of_admin_that_changes_something_is_not_sent(broker: PulsarBroker) -> None:
    create = ["topics", "create", "of-an-assistant"]
    async with assistant(broker) as client:
        assert "--read-only forbids that; nothing was sent" in await refused(client, "admin", arguments=create)
        delete = ["topics", "delete", "looked-at"]
        assert "--read-only forbids that; nothing was sent" in await refused(client, "admin", arguments=delete)
        assert "of-an-assistant" not in await said(client, "admin", arguments=["topics", "list", "public/default"])
    async with assistant(broker, acts=True) as client:
        await said(client, "admin", arguments=create)
        assert "of-an-assistant" in await said(client, "admin", arguments=["topics", "list", "public/default"])


async def test_the_tools_say_whether_they_only_read(broker: PulsarBroker) -> None:
    async with assistant(broker, acts=True) as client:
        reads = {tool.name: tool.annotations.read_only_hint for tool in (await client.list_tools()).tools}  # type: ignore[union-attr]
    assert (reads["why"], reads["admin"], reads["state_reset"]) == (True, False, False)
    async with assistant(broker) as client:
        assert all(tool.annotations.read_only_hint for tool in (await client.list_tools()).tools)  # type: ignore[union-attr]


async def test_a_refusal_is_the_answer(broker: PulsarBroker) -> None:
    async with assistant(broker) as client:
        assert "absent" in await refused(client, "why", topic="absent", subscription="s")


async def test_a_fault_of_an_assistant_acts(broker: PulsarBroker) -> None:
    async with assistant(broker, acts=True) as client:
        given = {"command": "LOOKUP", "action": "delay", "seconds": 0.01, "topic": "of-no*"}
        rule = json.loads(await said(client, "fault_add", **given))
        assert [each["id"] for each in json.loads(await said(client, "fault_list"))] == [rule["id"]]
        await said(client, "fault_remove", all=True)


async def test_a_long_answer_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "MOST", 10)
    text, failed = await main.run(["--version"], {})
    assert not failed
    assert text.startswith("pulsarium\n(")
    assert text.endswith(" more bytes; ask for less)")


async def test_a_command_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch, broker: PulsarBroker) -> None:
    monkeypatch.setattr(main, "SECONDS", 0.5)
    wait = ["wait", f"--admin-url={broker.admin_url}", "--state", "exists", "--", "never"]
    text, failed = await main.run(wait, {})
    assert failed
    assert text == "(ended after 0.5 s)"


def shown(language: str) -> list[str]:
    """Return the blocks of the page that a test of this file runs."""
    page = blocks(ROOT / "docs" / "assistants.md")
    return [each.text for each in page if (each.marker, each.language) == (TESTED, language)]


@pytest.mark.parametrize(("file", "acts"), list(zip(shown("json"), [False, True], strict=True)))
async def test_an_assistant_starts_the_command_of_the_docs(file: str, acts: bool, broker: PulsarBroker) -> None:
    (server,) = json.loads(file)["mcpServers"].values()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PULSARIUM_ADMIN_URL": broker.admin_url}
    parameters = StdioServerParameters(**server, env=env)
    async with Client(stdio_client(parameters)) as client:
        assert (broker.admin_url in str(client.instructions)) != acts  # `exec` gives a broker of its own
        assert ("fault_add" in {tool.name for tool in (await client.list_tools()).tools}) == acts
        assert json.loads(await said(client, "clock_show"))["frozen"] is False


def test_options_of_the_broker_are_passed_on_as_they_were_given() -> None:
    context = main.mcp.make_context("mcp", ["--admin-url", "http://b:1", "--tls-allow-insecure", "--wait", "90s"])
    assert main.caller_options(context) == ["--tls-allow-insecure", "--wait=90s"]
    assert isinstance(context, click.Context)


# ---- the session in the docs


def session() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield each call of the session in the docs, with the answer that stands there."""
    (block,) = shown("text")
    for call in block.removeprefix("> ").split("\n> "):
        asked, _, answer = call.partition("\n")
        tool, _, given = asked.partition(" ")
        yield tool, json.loads(given), answer


@pytest.fixture
def new_broker() -> Iterator[PulsarBroker]:
    with running() as broker:
        yield broker


async def test_the_session_in_the_docs(new_broker: PulsarBroker) -> None:
    """Billing acknowledges a message after it has billed something, and one order has a total of 0."""
    orders = {"ann": 30, "bob": 0, "cid": 12, "dee": 7}
    async with (
        connect(new_broker.service_url) as client,
        client.create_producer("orders") as producer,
        client.subscribe(
            "orders", "billing", consumer_type=ConsumerType.Shared, consumer_name="till", initial_position=Earliest
        ) as consumer,
        assistant(new_broker) as assisted,
    ):
        for customer, total in orders.items():
            await producer.send(json.dumps({"total": total}).encode(), partition_key=customer)
        for _ in orders:
            message = await consumer.receive()
            if json.loads(message.data())["total"]:
                await consumer.acknowledge(message)
        await said(assisted, "wait", topic="orders", subscription="billing", state="acked", count=3)
        for tool, given, expected in session():
            found = await said(assisted, tool, **given)
            assert matches(expected, found)
