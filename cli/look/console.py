"""Call the routes of the console, so that the terminal and the console say the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from pulsarium.cli.admin.api import done
from pulsarium.cli.admin.asked import AdminRun, asks_which_broker
from pulsarium.cli.admin.errors import AdminError, ServerError
from pulsarium.rest.exchange import RestRequest, origin

PAGE: Final = 500
"""Rows in an answer at most, as the route of topics has them."""
_DEFAULT: Final = "public/default/"
NOT_FOUND: Final = 404


class Console:
    """Ask the console of one broker."""

    def __init__(self, session: AdminRun) -> None:
        self._session = session

    @property
    def url(self) -> str:
        return origin(self._session.url)

    def get(self, path: str, **query: object) -> Any:
        """Return the JSON of the answer. `path` begins after /pulsarium/, and a parameter that is None is left out.

        Raise `ServerError` for a refusal, and `AdminError` when the broker is a real Pulsar, which has no console.
        """
        reply = done(self._session.api.send(RestRequest("GET", f"/pulsarium/{path}", query, known=(NOT_FOUND,))))
        answer = reply.data()
        if reply.status != NOT_FOUND:
            return answer
        if isinstance(answer, dict) and "reason" in answer:
            near = "".join(f"; did you mean {short(name)}?" for name in answer.get("near", [])[:1])
            raise ServerError(NOT_FOUND, f"{reply.reason}{near}")
        raise AdminError(f"{self.url} is no Pulsarium: only Pulsarium answers this; use `pulsarium admin topics stats`")


def of_console(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select a broker. The command receives a `Console` as its first argument."""

    @asks_which_broker
    @wraps(command)
    def run(session: AdminRun, **options: Any) -> Any:
        return command(Console(session), **options)

    return run


def short(topic: str) -> str:
    """Return the shortest name by which commands know a topic."""
    domain, mark, path = topic.partition("://")
    if mark and domain == "persistent":
        name = path.removeprefix(_DEFAULT)
        return path if "/" in name else name
    return topic
