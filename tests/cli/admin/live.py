"""`pulsarium admin` against a broker of this process, over loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import trio
from click.testing import CliRunner, Result

from pulsarium.broker.config import PIP, Config, Profile
from pulsarium.broker.net.accepting import bind
from pulsarium.broker.web.http.server import serve_http
from pulsarium.broker.web.routes import site_of
from pulsarium.cli.main import cli
from tests.broker.loopback import HANGS
from tests.broker.wire import Bed, serving


class Live:
    """A broker, and a command line that calls its admin API."""

    def __init__(self, bed: Bed, url: str) -> None:
        self.bed = bed
        self.url = url

    async def run(self, *arguments: str) -> Result:
        line = ["admin", "--admin-url", self.url, *arguments]
        invoke = partial(CliRunner().invoke, cli, line, prog_name="pulsarium", catch_exceptions=False)
        return await trio.to_thread.run_sync(invoke)

    async def said(self, *arguments: str) -> str:
        """Return stdout of a run that must succeed."""
        result = await self.run(*arguments)
        assert (result.exit_code, result.stderr) == (0, ""), arguments
        return result.stdout

    async def refused(self, *arguments: str) -> str:
        """Return stderr of a run that must fail."""
        result = await self.run(*arguments)
        assert (result.exit_code, result.stdout) == (1, ""), arguments
        return result.stderr


@asynccontextmanager
async def live(config: Config | None = None, profile: Profile = PIP) -> AsyncIterator[Live]:
    with trio.fail_after(HANGS), bind("127.0.0.1", 0, "--http-port") as sock:
        async with serving(config, profile=profile) as bed, trio.open_nursery() as nursery:
            await nursery.start(serve_http, site_of(bed.broker), sock)
            yield Live(bed, f"http://127.0.0.1:{sock.getsockname()[1]}")
            nursery.cancel_scope.cancel()
