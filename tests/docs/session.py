"""A page as a session of a shell: its commands run in its order, in a folder, against a broker on free ports."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import indent
from typing import Final
from urllib.parse import urlsplit

import click
from click.testing import CliRunner

from pulsarium.broker.config.version import VERSION
from pulsarium.broker.testing.broker import PulsarBroker
from pulsarium.broker.testing.starting import Running
from pulsarium.cli.banner import banner
from pulsarium.cli.main import cli
from pulsarium.cli.serve import gather, serve
from yardsticks.servers import free_port

from .blocks import HIDDEN, OUTPUT, SHELL, Block, commands, matches, words_of

SECONDS: Final = 150  # limit of one program, generous for a busy machine
PROGRAMS: Final = {"chmod", "cp", "curl", "echo", "export", "mkdir", "pulsarium", "printf", "pytest", "python", "sh"}
# Programs of the reader, whose work is not part of the page.
STUBS: Final = {"dotnet": "exit 0", "go": "exit 0", "mvn": "exit 0", "pytest": "exit 0", "jq": "cat", "npm": "exit 0"}
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.]\d+Z")
LOOPBACK: Final = re.compile(r"(localhost|127[.]0[.]0[.]1):(\d+)")
PLACE: Final = re.compile(r"^( *)# the block$", re.M)  # in hidden Python: the next block of Python stands here
# Runs a block, which may wait on trio's loop without a function around it.
PYTHON: Final = """
import ast, inspect, sys, trio
waits = eval(compile(sys.argv[1], "block", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
if inspect.iscoroutine(waits):
    trio.run(lambda: waits)
"""
ENDLESS: Final = "until Ctrl-C"  # the end of the comment behind a command that is not run
# These start processes of their own, and look at what the process inherits.
APART: Final = frozenset({"exec", "explore", "conformance", "compact"})
OPERATORS: Final = re.compile(r"""(?:[^|&;<>$'"#]|'[^']*'|"[^"$]*")*(?:\s#.*)?""")


class Session:
    """The shell of one page. A line `pulsarium serve` takes the place of the broker before it."""

    def __init__(self, folder: Path, files: Iterable[Block]) -> None:
        self.folder = folder
        self.printed = ""
        self._around = "# the block"
        for block in files:
            (folder / block.about).write_text(block.text)
        for name, script in STUBS.items():
            path = folder / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        (folder / ".curlrc").write_text("fail-with-body\nsilent\nshow-error\n")
        self._environment: dict[str, str] = {}
        self._stack = ExitStack()
        self._broker: PulsarBroker | None = None
        self._proxied = free_port()  # of the proxy that a page asks Toxiproxy's API for

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def play(self, block: Block) -> None:
        """Run a block, or compare its output."""
        if block.marker == OUTPUT:
            self._compare(block, block.text)
        elif block.language == "python" and block.marker == HIDDEN:
            self._around = block.text
        elif block.language == "python":
            inner = PLACE.sub(lambda place: indent(self._here(block.text), place[1]), self._around)
            self._around = "# the block"
            self.printed = self._process([sys.executable, "-P", "-c", PYTHON, inner])
        elif block.language == "console":
            for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
                command, _, shown = part.partition("\n")
                self.printed = self._run(command)
                self._compare(block, shown)
        else:
            assert block.language in SHELL, f"{block}: no test runs a block of {block.language or 'no language'}"
            printed = [self._run(command) for command in commands(block.text)]
            self.printed = "".join(printed) if block.marker != HIDDEN else self.printed

    @property
    def broker(self) -> PulsarBroker:
        return self._broker or self._serve(["pulsarium", "serve"])

    def _serve(self, words: list[str]) -> PulsarBroker:
        self._stack.close()
        asked = serve.make_context("serve", words[2:]).params
        asked["toxiproxy_port"] = 0 if asked["toxiproxy_port"] else None
        options = gather(asked, free_ports=True)[0]
        self._broker = self._stack.enter_context(Running(options))
        ready = f"pulsarium ready {self._broker.service_url} {self._broker.admin_url}"
        self.printed = f"{ready}\n{click.unstyle(banner(options, ready))}".replace(
            VERSION, VERSION.partition(".dev")[0]
        )
        return self._broker

    def _run(self, command: str) -> str:
        words = words_of(command)
        assert words[0] in PROGRAMS, f"no test runs {words[0]}: mark the block as an illustration, with the reason"
        if command.endswith(ENDLESS):
            return ""
        if words[:2] == ["pulsarium", "serve"]:
            self._serve(words)
            return self.printed
        if words[0] == "export":
            self._environment |= dict(word.split("=", 1) for word in words[1:])
            return ""
        command = self._here(command)
        if words[0] == "pulsarium" and words[1] not in APART and OPERATORS.fullmatch(command):
            return self._call(shlex.split(command, comments=True)[1:])
        return self._process(["bash", "-euo", "pipefail", "-c", command])

    def _call(self, words: list[str]) -> str:
        ran = CliRunner().invoke(cli, words, prog_name="pulsarium", env=self._where())
        assert ran.exit_code == 0, f"{shlex.join(words)}: {ran.exit_code}\n{ran.output}{ran.exception!r}"
        return ran.output

    def _process(self, command: list[str]) -> str:
        path = os.pathsep.join([str(self.folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
        places = {"HOME": str(self.folder), "PATH": path, "PYTHONSAFEPATH": "1"}
        env = {**os.environ, **self._where(), **places}
        ran = subprocess.run(
            command, cwd=self.folder, env=env, check=False, capture_output=True, text=True, timeout=SECONDS
        )
        assert ran.returncode == 0, f"{command}: {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def _where(self) -> dict[str, str]:
        urls = {"ADMIN_URL": self.broker.admin_url, "SERVICE_URL": self.broker.service_url}
        return {**{f"PULSARIUM_{name}": url for name, url in urls.items()}, **self._environment}

    def _ports(self) -> Iterator[tuple[int, int]]:
        """Yield the ports of a page, each with the port of the broker here."""
        brokers = self.broker.call(lambda running: [(each.service_url, each.admin_url) for each in running.brokers])
        for number, urls in enumerate(brokers):
            yield from zip((6650 + number, 8080 + number), (urlsplit(url).port or 0 for url in urls), strict=True)
        if self.broker.toxiproxy_url:
            yield 8474, urlsplit(self.broker.toxiproxy_url).port or 0
            yield 26650, self._proxied

    def _here(self, text: str) -> str:
        """Put the ports of the broker here in place of those of the page."""
        if not LOOPBACK.search(text):
            return text
        here = dict(self._ports())
        return LOOPBACK.sub(lambda found: f"{found[1]}:{here.get(int(found[2]), found[2])}", text)

    def _compare(self, block: Block, shown: str) -> None:
        page = {here: port for port, here in self._ports()}
        printed = LOOPBACK.sub(lambda found: f"localhost:{page.get(int(found[2]), found[2])}", self.printed)
        shown = LOOPBACK.sub(r"localhost:\2", shown)
        seen = matches(TIME.sub("TIME", shown), TIME.sub("TIME", printed))
        assert seen, f"{block}: the page shows\n{shown}\nbut was printed:\n{printed}"
