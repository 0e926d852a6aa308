"""Errors of the REST API, with the names of Java's PulsarAdminException."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pulsarium.client.errors import FixError, GiveUpError, PulsarError, RetryError


class AdminError(PulsarError):
    """A call of the REST API failed.

    `reason` is the broker's text. `status` is the HTTP status, or None without an answer.
    """

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class AdminConnectError(AdminError, RetryError):
    """The broker cannot be reached, or sent no answer."""


class BadRequest(AdminError, FixError):
    """400: the broker cannot process the request."""


class NotAuthorized(AdminError, FixError):
    """401 or 403: the broker does not accept the credentials, or the role has no permission.

    Brokers do not always distinguish the two. Also raised when the application's `Authentication` fails.
    """


class NotFound(AdminError, FixError):
    """404: the tenant, namespace, topic, subscription, message or route does not exist."""


class NotAllowed(AdminError, FixError):
    """405: the topic, namespace or broker does not support the call."""


class Conflict(AdminError, FixError):
    """409: the resource exists already, or another client changes it."""


class PreconditionFailed(AdminError, FixError):
    """412: the state of the resource does not allow the call, or a value is out of bounds."""


class ServerSideError(AdminError, RetryError):
    """500 and above: the broker failed, or does not serve the resource."""


class UnexpectedAnswer(AdminError, GiveUpError):
    """The broker sent an unexpected answer: an unknown status, a redirect in a circle, or an unreadable message."""


_BY_STATUS: Mapping[int, type[AdminError]] = MappingProxyType(
    {
        400: BadRequest,
        401: NotAuthorized,
        403: NotAuthorized,
        404: NotFound,
        405: NotAllowed,
        409: Conflict,
        412: PreconditionFailed,
    }
)


def refusal(status: int, reason: str) -> AdminError:
    """Return the error for a status and its text."""
    kind = _BY_STATUS.get(status, ServerSideError if status >= 500 else UnexpectedAnswer)
    return kind(reason, status)
