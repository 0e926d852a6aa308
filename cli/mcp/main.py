"""`pulsarium mcp`: serve the tools over standard input and output."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from pulsarium.broker.config.version import VERSION
from pulsarium.cli.admin.asked import READ_ONLY, AdminRun, asks_which_broker
from pulsarium.cli.durations import Duration
from pulsarium.cli.grouped import GroupedCommand
from pulsarium.proto.errors import needs

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

SECONDS: Final = 300
"""A command that runs for longer is ended."""
MOST: Final = 100_000
"""Bytes of an answer. More of it would only fill the assistant's context."""

INSTRUCTIONS: Final = """\
These tools look at one Apache Pulsar broker, at {url}. Begin with `status`, which names the topics and what is stuck.
`why` explains why a message does not come. `tail` shows decoded messages. `lint` and `check` judge a capture: the
protocol mistakes of a client, and lost, doubled or disordered messages. `admin` has the commands of pulsar-admin.
A broker that is no Pulsarium has only `why` and `admin`, and a proxy in front of it faults, masks and captures, too:
begin with `admin` and `why` there. `lint`, `check` and `capture_show` read files of captures.
{acts}"""
_MAY_ACT: Final = "Some tools change the broker: faults, masks, clock and state act on everybody who uses it."
_MAY_LOOK: Final = "No tool changes the broker. A person can start this server with --allow-acts."


@click.command(cls=GroupedCommand)
@click.option("--allow-acts", is_flag=True, help="Offer the tools that change the broker or write files, too.")
@asks_which_broker
@click.pass_context
def mcp(ctx: click.Context, session: AdminRun, allow_acts: bool) -> None:
    """Serve coding assistants over the Model Context Protocol, on standard input and output.

    An assistant that starts this command gets tools that look at a broker: topics, decoded messages, why a message does
    not come, faults, masks, captures and what the linter finds in them, and the commands of pulsar-admin. Without
    --allow-acts, no tool changes anything.

    \b
    Give an assistant the broker of this machine:
      {"mcpServers": {"pulsarium": {"command": "pulsarium", "args": ["mcp"]}}}
    Let it inject faults and move the clock, on a broker of its own:
      {"command": "pulsarium", "args": ["exec", "--", "pulsarium", "mcp", "--allow-acts"]}

    On a real Pulsar, `admin` and `why` work. The other tools need Pulsarium.
    """
    with needs("pulsarium mcp", "mcp"):
        import anyio
        from mcp.server.stdio import stdio_server

    server = server_of(session.url, [f"--admin-url={session.url}", *caller_options(ctx)], acts=allow_acts)

    async def serve() -> None:
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())

    anyio.run(serve)


def caller_options(ctx: click.Context) -> list[str]:
    """Return the options of the command line that say who calls. Commands find the variables themselves."""
    words = []
    for param in ctx.command.params:
        is_given = ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if is_given and param.name != "admin_url" and getattr(param, "heading", "") == "Broker":
            value = ctx.params[param.name or ""]
            text = f"{value:g}s" if isinstance(param.type, Duration) else value
            words.append(param.opts[0] if value is True else f"{param.opts[0]}={text}")
    return words


def server_of(url: str, broker: Sequence[str], *, acts: bool) -> Server[Any]:
    """Return the server of the tools, for the broker at a URL with these options."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    from pulsarium.cli.mcp.tools import TOOLS, WrongCall

    offered = {name: tool for name, tool in TOOLS.items() if acts or not tool.acts}

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=tool.description(),
                    input_schema=tool.schema(acts=acts),
                    annotations=types.ToolAnnotations(read_only_hint=not (acts and (tool.acts or name == "admin"))),
                )
                for name, tool in offered.items()
            ]
        )

    async def call_tool(_: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            if asked.name not in offered:
                raise WrongCall(_absent(asked.name, asked.name in TOOLS))
            line = offered[asked.name].command_line(asked.arguments or {}, broker, acts=acts)
        except WrongCall as error:
            text, failed = str(error), True
        else:
            text, failed = await run(line, {} if acts else {READ_ONLY: "true"})
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)

    said = INSTRUCTIONS.format(url=url, acts=_MAY_ACT if acts else _MAY_LOOK)
    return Server("pulsarium", version=VERSION, instructions=said, on_list_tools=list_tools, on_call_tool=call_tool)


def _absent(name: str, is_act: bool) -> str:
    if is_act:
        return f"{name} changes the broker; a person may start this server with --allow-acts"
    return f"there is no tool {name}"


async def run(words: Sequence[str], variables: Mapping[str, str]) -> tuple[str, bool]:
    """Run a command of Pulsarium. Return what it printed, and whether it failed."""
    import anyio
    from anyio.abc import ByteReceiveStream

    printed, said = bytearray(), bytearray()
    dropped = 0

    async def read(stream: ByteReceiveStream | None, into: bytearray) -> None:
        nonlocal dropped
        assert stream is not None
        async for data in stream:
            taken = data[: MOST - len(into)]
            into += taken
            dropped += len(data) - len(taken)

    command = [sys.executable, "-P", "-m", "pulsarium", *words]
    environment = {**os.environ, **variables, "NO_COLOR": "1"}
    with anyio.move_on_after(SECONDS) as limit:
        async with await anyio.open_process(command, stdin=subprocess.DEVNULL, env=environment) as process:
            async with anyio.create_task_group() as group:
                group.start_soon(read, process.stdout, printed)
                group.start_soon(read, process.stderr, said)
            await process.wait()
    told = [part.decode(errors="replace").rstrip() for part in (printed, said) if part]
    if dropped:
        told.append(f"({dropped} more bytes; ask for less)")
    if limit.cancelled_caught:
        told.append(f"(ended after {SECONDS} s)")
    return "\n".join(told), limit.cancelled_caught or process.returncode != 0
