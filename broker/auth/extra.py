"""Libraries that only secured brokers need: the extra `auth`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pulsarium.broker.config.errors import ConfigError
from pulsarium.proto.extras import MissingExtra, needs


@contextmanager
def needs_extra(what: str) -> Iterator[None]:
    """Have imports stand inside; one that is missing is a ConfigError that says what to install."""
    try:
        with needs(what, "auth"):
            yield
    except MissingExtra as error:
        raise ConfigError("", "authenticationProviders", str(error)) from None
