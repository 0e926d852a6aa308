"""Makes the recorded calls again, in their order, of another broker."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from pulsarium.conformance.recordings.replay import Broker

from .recording import Answer, Call, Step
from .steps import Clients

TIMEOUT = 60.0
MARK = re.compile(r'"?<<(\w+)(?: ([\w-]+))?>>"?')


@dataclass(frozen=True)
class Played:
    """A call, its answer, and the time that the answer took, in seconds."""

    call: Call
    answer: Answer
    seconds: float


def play(broker: Broker, lines: Iterable[Call | Step], skipped: Collection[Call] = ()) -> Iterator[Played]:
    """Make all calls in order but the `skipped` ones. Do not yield calls without a recorded answer."""
    with closing(Caller(broker)) as caller, closing(Clients(broker.service_url, caller.get)) as clients:
        for line in lines:
            if isinstance(line, Step):
                clients.take(line.name)
                caller.names.update({(what, ""): name for what, name in clients.names.items()})
            elif line not in skipped:
                begin = time.monotonic()
                answer = caller.answer(line)
                if line.recorded:
                    yield Played(line, answer, time.monotonic() - begin)


class Caller:
    """A client of the admin API, with one connection."""

    def __init__(self, broker: Broker) -> None:
        self._host = broker.admin_url.removeprefix("http://")
        self._connection = http.client.HTTPConnection(self._host, timeout=TIMEOUT)
        self.names: dict[tuple[str, str], str] = {}

    def close(self) -> None:
        self._connection.close()

    def get(self, path: str) -> Any:
        return self._ask("GET", path, {"Accept": "application/json"}, None).body

    def answer(self, call: Call) -> Answer:
        """Return the answer of a call, or status 0 and the error when there is no answer."""
        body = None if call.body is None else self._named(call.body).encode()
        try:
            return self._ask(call.method, self._named(call.url), call.headers, body)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return Answer(0, f"no answer: {error!r}", plain=True)

    def _ask(self, method: str, path: str, headers: Any, body: bytes | None) -> Answer:
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        text = response.read().decode(errors="backslashreplace")
        plain = False
        value: Any = text
        try:
            value = json.loads(text) if text else ""
        except ValueError:
            plain = True
        return Answer(response.status, value, plain, response.getheader("Content-Type", ""), kept(response))

    def _named(self, text: str) -> str:
        """Return `text` with this broker's own names and ids for the recorded one's.

        In a body, a mark is always a whole string, even where it stands for a number.
        """
        return MARK.sub(self._replacement, text)

    def _replacement(self, found: re.Match[str]) -> str:
        what, of = found[1], found[2] or ""
        if (what, of) not in self.names:
            self.names[what, of] = self._look_up(what, of)
        name = self.names[what, of]
        return json.dumps(name) if found[0].startswith('"') and what != "ledger" else name

    def _look_up(self, what: str, of: str) -> str:
        match what:
            case "ledger":
                found = self.get(f"/admin/v2/persistent/t1/data/{of}/lastMessageId")
                return str(found.get("ledgerId", 0) if isinstance(found, dict) else 0)
            case "broker":
                return str(self.get("/admin/v2/brokers")[0])
            case "bookie":
                found = self.get("/admin/v2/bookies/all")
                return str(found["bookies"][0]["bookieId"]) if "bookies" in found else "127.0.0.1:3181"
            case "now":
                return str(int(time.time() * 1000))
        raise KeyError(what)


def kept(response: http.client.HTTPResponse) -> dict[str, str]:
    """Return the headers that are compared, in lower case."""
    headers = ((name.lower(), value) for name, value in response.getheaders())
    names = ("allow", "location", "www-authenticate")
    return {name: value for name, value in headers if name in names or name.startswith("x-pulsar")}
