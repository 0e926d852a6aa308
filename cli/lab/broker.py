"""The running broker whose lab a command talks to."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from pulsarium.cli.admin.api import done
from pulsarium.cli.admin.asked import asks_which_broker
from pulsarium.cli.admin.session import Session
from pulsarium.rest.exchange import NO_BODY, Reply, Request


class LabOf:
    """Calls below /lab of one broker. They raise what `pulsarium admin` raises, which ends a command in one line."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def call(self, method: str, path: str, body: object = NO_BODY, **query: object) -> Any:
        """The answer's JSON, None if it is empty. `path` begins after /lab/."""
        return self.reply(method, path, body, **query).data()

    def reply(self, method: str, path: str, body: object = NO_BODY, **query: object) -> Reply:
        """The answer as it is."""
        return done(self._session.api.send(Request(method, f"/lab/{path}", query, body)))


def of_broker(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which broker; the command is given a LabOf first."""

    @asks_which_broker
    @wraps(command)
    def run(session: Session, **options: Any) -> Any:
        return command(LabOf(session), **options)

    return run
