"""Connect the lab's commands to a running broker, and make options of declared arguments."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Final

import click

from pulsarium.broker.lab.arguments import ADDED_BY, json_arguments
from pulsarium.cli import terminal
from pulsarium.cli.admin.api import Api, done
from pulsarium.cli.admin.asked import AdminRun, asks_which_broker
from pulsarium.cli.admin.errors import ServerError
from pulsarium.cli.durations import about
from pulsarium.cli.refusal import RunRefused
from pulsarium.rest.exchange import NO_BODY, RestReply, RestRequest, origin

VALUES: Final[Mapping[tuple[type, ...], type]] = {
    (str,): str,
    (str, type(None)): str,
    (int,): int,
    (int, type(None)): int,
    (int, float): float,
}

SLICE: Final = 20.0  # seconds that one call waits: shorter than the timeout of an HTTP proxy
NOT_FOUND: Final = 404
NOT_YET: Final = 408
OF_ANY_BROKER: Final = ("faults", "masks", "captures", "violations", "live")
"""The parts of the lab that a proxy in front of any broker has."""
OF_PROXY: Final = 501
"""The answer of a proxy to a call that needs the state of a broker."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print the broker's answer as JSON.")


class LabOf:
    """Send requests below /lab to one broker.

    Errors are those of `pulsarium admin`, which end a command with one line.
    """

    def __init__(self, session: AdminRun) -> None:
        self._session = session

    @property
    def api(self) -> Api:
        """Return the calls of the broker's admin API."""
        return self._session.api

    @property
    def is_there(self) -> bool:
        """Return whether the broker has the lab with its state: one that is not Pulsarium does not know its calls.

        Nor does a proxy in front of any broker.
        """
        known = tuple(range(400, 600))
        reply = done(self._session.api.send(RestRequest("GET", "/lab/process", known=known)))
        told = reply.data() if isinstance(reply.data(), dict) else {}
        return reply.status < known[0] or ("reason" in told and reply.status != OF_PROXY)

    def call(self, method: str, path: str, body: object = NO_BODY, **query: object) -> Any:
        """Return the JSON of the answer, or None when the answer is empty. `path` begins after /lab/."""
        return self.reply(method, path, body, **query).data()

    def wait(self, path: str, timeout: float, **query: object) -> Any:
        """Return the answer of a route that waits. Raise `ServerError` 408 after `timeout` seconds."""
        end = time.monotonic() + timeout
        while True:
            left = max(end - time.monotonic(), 0.0)
            try:
                return self.call("GET", path, timeout=min(left, SLICE), **query)
            except ServerError as error:
                if error.status != NOT_YET or left <= SLICE:
                    raise

    def warn(self, *, sure: bool) -> None:
        """Name the broker that the command changes. Ask on a terminal where the caller named no broker.

        Raise `RunRefused` when the answer is no. With `sure`, do not ask.
        """
        session = self._session
        process = self.call("GET", "process")
        up, data = about(time.time() - process["upSinceMs"] / 1000), process["data"]
        where = "data in memory" if data is None else f"data in {data}"
        click.echo(f"broker at {origin(session.url)}: pid {process['pid']}, up {up}, {where}", err=True)
        if sure or session.named_url is not None or not terminal.answers():
            return
        if not click.confirm("Change this broker?", err=True):
            raise RunRefused("nothing was changed; name another broker with --admin-url")

    def reply(self, method: str, path: str, body: object = NO_BODY, **query: object) -> RestReply:
        """Return the answer itself. Raise `ServerError` for a refusal, and for a broker that has no lab."""
        reply = done(self._session.api.send(RestRequest(method, f"/lab/{path}", query, body, known=(NOT_FOUND,))))
        if reply.status != NOT_FOUND:
            return reply
        told = reply.data()
        if isinstance(told, dict) and "reason" in told:
            raise ServerError(NOT_FOUND, reply.reason)
        url = origin(self._session.url)
        instead = "put `pulsarium proxy` in front of it"
        if path.partition("/")[0] not in OF_ANY_BROKER:
            instead = "only a broker of Pulsarium can do this; start one with `pulsarium serve`"
        raise ServerError(NOT_FOUND, f"{url} has no lab, because it is no Pulsarium: {instead}")


sure = click.option("--yes", "sure", is_flag=True, help="Do not ask on a terminal where no option names the broker.")


def of_broker(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select a broker. The command receives a `LabOf` as its first argument."""

    @asks_which_broker
    @wraps(command)
    def run(session: AdminRun, **options: Any) -> Any:
        return command(LabOf(session), **options)

    return run


def taking(kind: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds an option for each argument that `kind` declares."""

    def add_options(command: Callable[..., None]) -> Callable[..., None]:
        for each in reversed(json_arguments(kind).values()):
            value = click.Choice(each.choices) if each.choices else VALUES[each.types]
            metavar, text = None if each.choices else each.metavar or "GLOB", each.text.replace("`", "'")
            command = click.option(f"--{each.name.replace('_', '-')}", type=value, metavar=metavar, help=text)(command)
        return command

    return add_options


def listed(lines: Iterable[str], things: str) -> None:
    """Print the lines of a list, or which command adds to an empty one. `things` are a name in `ADDED_BY`."""
    click.echo("\n".join(lines) or f"No {things}. Add one: {ADDED_BY[things]}")


def asked(given: Mapping[str, Any], *kinds: type) -> dict[str, Any]:
    """Return the arguments that the caller gave, by their JSON names."""
    return {name: given[each.name] for name, each in json_arguments(*kinds).items() if given[each.name] is not None}
