"""Rewrite the URLs of brokers in answers, so that clients stay on the proxy. Sans-IO."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand


class BrokerUrls(NamedTuple):
    """The URLs of a broker without and with TLS, or ""."""

    plain: str
    secure: str


Through = Callable[[BrokerUrls], BrokerUrls]
"""Map the URLs of a broker to those of the proxy for that broker."""

_URLS: Final = {
    f"{name}{suffix}": f"{name}{suffix_of_tls}"
    for suffix, suffix_of_tls, names in (
        ("Url", "UrlTls", ("brokerService", "assignedBrokerService")),
        ("_url", "_url_tls", ("broker_service", "broker", "controller_broker")),
    )
    for name in names
}
"""Fields with URLs, and the fields beside them with the URLs for TLS."""


def lead(command: BaseCommand, through: Through) -> bool:
    """Map each broker URL of a command by `through`. Return whether the command has one."""
    # With proxy_through_service_url clients stay on the URL that they know, and name the broker's URL in CONNECT.
    return not command.lookupTopicResponse.proxy_through_service_url and _lead(command, through)


def _lead(message: Any, through: Through) -> bool:
    changed = False
    names = message.DESCRIPTOR.fields_by_name
    for name, secure_name in _URLS.items():
        if name in names and (message.HasField(name) or message.HasField(secure_name)):
            given = BrokerUrls(getattr(message, name), getattr(message, secure_name))
            ours = through(given)
            for each, theirs, url in zip((name, secure_name), given, ours, strict=True):
                if url != theirs:
                    setattr(message, each, url)
                    changed = True
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if field.is_repeated else [value]:
                changed |= _lead(each, through)
    return changed


def _has_urls(described: Any, inside: frozenset[str] = frozenset()) -> bool:
    inside |= {described.full_name}
    return any(
        field.name in _URLS
        or (
            field.message_type is not None
            and field.message_type.full_name not in inside
            and _has_urls(field.message_type, inside)
        )
        for field in described.fields
    )


WITH_URLS: Final = frozenset(
    field.number
    for field in BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None and _has_urls(field.message_type)
)
"""The command types whose frames may have URLs of brokers."""
