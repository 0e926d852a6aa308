"""What can go wrong with a call of the REST API, named as Java's PulsarAdminException names it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pulsarium.client.errors import FixError, GiveUpError, PulsarError, RetryError


class AdminError(PulsarError):
    """A call that failed. `reason` is what the broker said, `status` what it answered, None if nothing came."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class AdminConnectError(AdminError, RetryError):
    """No broker answered."""


class BadRequest(AdminError, FixError):
    """400: the call makes no sense to the broker."""


class NotAuthorized(AdminError, FixError):
    """401 and 403: the broker does not know who calls, or knows and refuses; it does not always tell them apart. Also
    where the application's `Authentication` failed to give its data."""


class NotFound(AdminError, FixError):
    """404: no such tenant, namespace, topic, subscription, message or route."""


class NotAllowed(AdminError, FixError):
    """405: not for a topic, namespace or broker like this."""


class Conflict(AdminError, FixError):
    """409: it is there already, or somebody else changes it."""


class PreconditionFailed(AdminError, FixError):
    """412: not in the state it is in, or with a value out of bounds."""


class ServerSideError(AdminError, RetryError):
    """500 and above: the broker failed, or leaves that to another."""


class UnexpectedAnswer(AdminError, GiveUpError):
    """An answer that no broker should give: another status, a redirect in a circle, a message that cannot be read."""


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
    """The error of an answer that is a refusal."""
    kind = _BY_STATUS.get(status, ServerSideError if status >= 500 else UnexpectedAnswer)
    return kind(reason, status)
