"""What a REST call is refused with."""

from __future__ import annotations

from pulsarium.broker.model.errors import (
    BrokerServiceError,
    NotAllowedError,
    SubscriptionNotFoundError,
    TopicHasClientsError,
    TopicNotFoundError,
)

STATUS_OF: tuple[tuple[type[BrokerServiceError], int], ...] = (
    (TopicNotFoundError, 404),
    (SubscriptionNotFoundError, 404),
    (TopicHasClientsError, 412),
    (NotAllowedError, 409),
)


class AdminError(Exception):
    """An answer of `status` with Pulsar's JSON, {"reason": reason}."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status
        self.reason = reason


class ContainerError(Exception):
    """An answer that in Pulsar comes from the servlet container, before its own code: a page instead of a reason."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status
        self.message = message


class UnreadableBody(Exception):
    """A body that is not what the route takes: 400 with `text` as it is, like the JSON parser's own words."""

    def __init__(self, text: str, content_type: str = "text/plain") -> None:
        super().__init__(text)
        self.text = text
        self.content_type = content_type


class WrongMediaType(Exception):
    """A body of a type that the route does not take: 415."""


def unexpected_body(text: str) -> AdminError:
    """What Pulsar answers when something that it needs is missing: a null that nobody expected."""
    return AdminError(500, f"\n --- An unexpected error occurred in the server ---\n\nMessage: {text}\n")


def from_model(error: BrokerServiceError) -> AdminError:
    """The one place where what the model refuses becomes a status."""
    status = next((status for kind, status in STATUS_OF if isinstance(error, kind)), 500)
    return AdminError(status, error.text)
