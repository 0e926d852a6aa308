"""Errors that refuse a REST call, and their statuses."""

from __future__ import annotations

from pulsarium.broker.config.profile import Profile
from pulsarium.broker.http.reply import NAMES, Reply
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


class Elsewhere(Exception):
    """Raised in place of an answer: another broker must answer, and `reply` says which."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.headers.get("Location", ""))
        self.reply = reply


class UnreadableBody(Exception):
    """Error for a body that the route cannot read: 400 with `text` as it is, in the JSON parser's own words."""

    def __init__(self, text: str, content_type: str = "text/plain") -> None:
        super().__init__(text)
        self.text = text
        self.content_type = content_type


class WrongMediaType(Exception):
    """Error for a body of a media type that the route does not accept: 415."""


def unexpected_body(text: str, otherwise: AdminError | None = None) -> AdminError:
    """Return the 500 that Pulsar answers when a value is unexpectedly null.

    `otherwise` is the answer of profiles that do not show this fault. The default is 400 with the same text.
    """
    return AdminError(500, f"{UNEXPECTED}{text}\n", otherwise)


def from_model(error: BrokerServiceError) -> AdminError:
    """Return the REST error for an error of the model."""
    status = next((status for kind, status in STATUS_OF if isinstance(error, kind)), 500)
    return AdminError(status, error.text)
