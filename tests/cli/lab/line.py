"""A command of the lab, against a broker of this process."""

from __future__ import annotations

from functools import partial

import trio
from click.testing import CliRunner, Result

from pulsarium.cli.main import cli
from tests.cli.admin.live import Live


class LabLine:
    """`pulsarium <command>`, with the broker's URL."""

    def __init__(self, live: Live, command: str) -> None:
        self.live = live
        self._command = command

    async def run(self, *arguments: str) -> Result:
        line = [self._command, *arguments, "--admin-url", self.live.url]
        invoke = partial(CliRunner().invoke, cli, line, prog_name="pulsarium", catch_exceptions=False)
        return await trio.to_thread.run_sync(invoke)

    async def said(self, *arguments: str) -> str:
        """Return stdout of a run that must succeed, with nothing on stderr but the name of the broker."""
        result = await self.run(*arguments)
        named = f"broker at {self.live.url}: "
        others = [line for line in result.stderr.splitlines() if not line.startswith(named)]
        assert (result.exit_code, others) == (0, []), arguments
        return result.stdout
