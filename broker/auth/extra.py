"""Libraries that only secured brokers need: the extra `auth`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pulsarium.broker.config.errors import ConfigError


@contextmanager
def needs_extra(what: str) -> Iterator[None]:
    """Imports stand inside; one that is missing is a ConfigError that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        reason = f"{what} needs {error.name}, which is not installed; pip install 'pulsarium[auth]'"
        raise ConfigError("", "authenticationProviders", reason) from None
