"""Writes of queued commands: commands of successive turns of the event loop share one."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel

from pulsarium.client.connection.protocol import ClientProtocol
from pulsarium.client.connection.writer import ENOUGH, QUIET_TURNS, CommandWriter
from tests.broker.wire import command, frame_of
from tests.client.both import on_both
from tests.client.peer import Pipe, Type

PING = command(Type.PING)


class Stage:
    """A writer that runs, and a stream that keeps each write as an item."""

    def __init__(self) -> None:
        self._protocol = ClientProtocol()
        self._protocol.connect()
        self._protocol.take()
        self._protocol.receive(frame_of(Type.CONNECTED, server_version="b", protocol_version=21))
        sent, self._written = anyio.create_memory_object_stream[bytes](math.inf)
        self.stream = Pipe(self._written, sent)
        self.writer = CommandWriter(self.stream, self._protocol)

    @property
    def writes(self) -> int:
        return self._written.statistics().current_buffer_used

    async def ping_each_turn(self, count: int) -> None:
        """Add one command in each turn of the event loop."""
        for _ in range(count):
            self._protocol.send(PING)
            self.writer.write_soon()
            await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def writing() -> AsyncIterator[Stage]:
    stage = Stage()
    async with stage.stream, anyio.create_task_group() as tasks:
        tasks.start_soon(stage.writer.run)
        await anyio.lowlevel.checkpoint()
        yield stage
        stage.writer.end()


@on_both
async def test_commands_of_successive_turns_are_written_together() -> None:
    async with writing() as stage:
        await stage.ping_each_turn(20)
        await stage.writer.flush()
        assert stage.writes == 1


@on_both
async def test_a_task_that_never_stops_does_not_hold_up_a_write() -> None:
    async with writing() as stage:
        await stage.ping_each_turn(5 * ENOUGH)
        assert 3 <= stage.writes <= 5


@on_both
async def test_a_single_command_waits_for_a_few_turns_only() -> None:
    async with writing() as stage:
        await stage.ping_each_turn(1)
        for _ in range(QUIET_TURNS + 10):
            await anyio.lowlevel.checkpoint()
        assert stage.writes == 1
