"""Errors that refuse a REST call, and their statuses."""

from __future__ import annotations

from pulsarium.broker.config.profile import Profile
from pulsarium.broker.model.errors import (
    BrokerServiceError,
    HasShadowsError,
    NoSuchMessageError,
    NotAllowedError,
    SourceNotFoundError,
    SubscriptionNotFoundError,
    TopicHasClientsError,
    TopicNotFoundError,
    UnsupportedSubscriptionTypeError,
)
from pulsarium.broker.web.http.reply import NAMES, HttpReply

STATUS_OF: tuple[tuple[type[BrokerServiceError], int], ...] = (
    (TopicNotFoundError, 404),
    (SubscriptionNotFoundError, 404),
    (SourceNotFoundError, 404),
    (HasShadowsError, 422),
    (TopicHasClientsError, 412),
    (UnsupportedSubscriptionTypeError, 405),
    (NotAllowedError, 409),
    (NoSuchMessageError, 400),
)
UNEXPECTED = "\n --- An unexpected error occurred in the server ---\n\nMessage: "


class AdminError(Exception):
    """Error that answers `status` with Pulsar's JSON, {"reason": reason}. See `told`."""

    def __init__(self, status: int, reason: str, otherwise: AdminError | None = None) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status
        self.reason = reason
        self._otherwise = otherwise

    def told(self, profile: Profile) -> AdminError:
        """Return the error to answer. The profile decides whether a faulty call gets 500, as from 4.2.4, or a 4xx."""
        if self.status != 500 or profile.own_faults_are_shown:
            return self
        return self._otherwise or AdminError(400, self.reason.removeprefix(UNEXPECTED).strip())


class ContainerError(Exception):
    """Error that Pulsar's servlet container answers, before Pulsar's own code: a page in place of a reason."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status
        self.message = message

    def told(self, profile: Profile) -> ContainerError:
        """Return the error to answer, as `AdminError.told` does."""
        return self if self.status != 500 or profile.own_faults_are_shown else ContainerError(400, NAMES[400])


class HeadTooLarge(ContainerError):
    """Error for an answer whose status line and headers are too large for the container. No caller is at fault."""

    def __init__(self) -> None:
        super().__init__(500, "Response Header Fields Too Large")

    def told(self, profile: Profile) -> ContainerError:
        """Return the error to answer, which is this one in every profile."""
        return self


class Elsewhere(Exception):
    """Raised in place of an answer: another broker must answer, and `reply` says which."""

    def __init__(self, reply: HttpReply) -> None:
        super().__init__(reply.headers.get("Location", ""))
        self.reply = reply


class EmptyBody(Exception):
    """Error for a missing body of a call that needs a value: 400 with the container's words."""


class WrongMediaType(Exception):
    """Error for a body of a media type that the route does not accept: 415."""


def request_failed() -> ContainerError:
    """Return the 500 of Pulsar's servlet container, for failures without words of Pulsar's own."""
    return ContainerError(500, NAMES[500])


def unexpected_body(text: str, otherwise: AdminError | None = None) -> AdminError:
    """Return the 500 that Pulsar answers when a value is unexpectedly null.

    `otherwise` is the answer of profiles that do not show this fault. The default is 400 with the same text.
    """
    return AdminError(500, f"{UNEXPECTED}{text}\n", otherwise)


def from_model(error: BrokerServiceError) -> AdminError:
    """Return the REST error for an error of the model."""
    status = next((status for kind, status in STATUS_OF if isinstance(error, kind)), 500)
    return AdminError(status, error.text)
