"""`pulsarium admin` with a broker that the test plays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pulsarium.cli.admin.api import Api
from pulsarium.cli.main import cli
from pulsarium.rest.exchange import RestReply


@dataclass
class Played:
    """A broker that answers by method and path, and with 204 to other requests. `sent` has all requests."""

    answers: dict[tuple[str, str], list[RestReply]] = field(default_factory=dict)
    sent: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)

    def answer(
        self, method: str, path: str, body: object = "", status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Add an answer to a request. The last answer is repeated. `path` begins after /admin/v2/ or with a slash."""
        text = body if isinstance(body, str | bytes) else json.dumps(body)
        reply = RestReply(status, dict(headers or {}), text if isinstance(text, bytes) else text.encode())
        self.answers.setdefault((method, path if path.startswith("/") else f"/admin/v2/{path}"), []).append(reply)

    def refuse(self, method: str, path: str, status: int, reason: str) -> None:
        self.answer(method, path, {"reason": reason}, status)

    def send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> RestReply:
        target = "/" + url.partition("://")[2].partition("/")[2]
        self.urls.append(url)
        self.headers.append(headers)
        short = target.removeprefix("/admin/v2/")
        self.sent.append((method, short, decoded(body)))
        replies = self.answers.get((method, target.partition("?")[0]))
        if not replies:
            return RestReply(204, {}, b"")
        return replies.pop(0) if len(replies) > 1 else replies[0]

    def run(self, *arguments: str, env: Mapping[str, str | None] | None = None) -> Result:
        """Run a command, which must not end in a traceback."""
        return CliRunner().invoke(cli, ["admin", *arguments], prog_name="pulsarium", env=env, catch_exceptions=False)

    def said(self, *arguments: str) -> str:
        """Return stdout of a run that must succeed and print nothing to stderr."""
        result = self.run(*arguments)
        assert (result.exit_code, result.stderr) == (0, "")
        return result.stdout

    def refused(self, *arguments: str) -> str:
        """Return stderr of a run that must fail and print nothing to stdout."""
        result = self.run(*arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        return result.stderr


def decoded(body: bytes | None) -> Any:
    if body is None:
        return None
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    """Return a broker that gets every request in place of a connection."""
    played = Played()
    monkeypatch.delenv("PULSAR_CLIENT_CONF", raising=False)

    async def send(_: Api, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> RestReply:
        return played.send(method, url, body, headers)

    monkeypatch.setattr(Api, "_send", send)
    return played
