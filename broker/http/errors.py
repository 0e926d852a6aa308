"""What a REST call is refused with."""

from __future__ import annotations

from pulsarium.broker.config.profile import Profile
from pulsarium.broker.http.reply import NAMES
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
    """An answer of `status` with Pulsar's JSON, {"reason": reason}; see `told`."""

    def __init__(self, status: int, reason: str, otherwise: AdminError | None = None) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status
        self.reason = reason
        self._otherwise = otherwise

    def told(self, profile: Profile) -> AdminError:
        """What a call is answered: where that is 500 for something wrong with the call, the profile decides."""
        if self.status != 500 or profile.own_faults_are_shown:
            return self
        return self._otherwise or AdminError(400, self.reason.removeprefix(UNEXPECTED).strip())


class ContainerError(Exception):
    """An answer that in Pulsar comes from the servlet container, before its own code: a page instead of a reason."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status
        self.message = message

    def told(self, profile: Profile) -> ContainerError:
        """As of AdminError."""
        return self if self.status != 500 or profile.own_faults_are_shown else ContainerError(400, NAMES[400])


class UnreadableBody(Exception):
    """A body that is not what the route takes: 400 with `text` as it is, like the JSON parser's own words."""

    def __init__(self, text: str, content_type: str = "text/plain") -> None:
        super().__init__(text)
        self.text = text
        self.content_type = content_type


class WrongMediaType(Exception):
    """A body of a type that the route does not take: 415."""


def unexpected_body(text: str, otherwise: AdminError | None = None) -> AdminError:
    """What Pulsar answers when something that it needs is missing: a null that nobody expected.

    `otherwise` is what profiles say that do not show this fault; 400 with the same text, unless given.
    """
    return AdminError(500, f"{UNEXPECTED}{text}\n", otherwise)


def from_model(error: BrokerServiceError) -> AdminError:
    """The one place where what the model refuses becomes a status."""
    status = next((status for kind, status in STATUS_OF if isinstance(error, kind)), 500)
    return AdminError(status, error.text)
