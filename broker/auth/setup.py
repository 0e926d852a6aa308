"""Whether what is set for security can be used, before anything is opened."""

from __future__ import annotations

from pulsarium.broker.auth.authentication import Authentication
from pulsarium.broker.auth.tls import context_of
from pulsarium.broker.config.errors import ConfigError
from pulsarium.broker.config.keys import Config


def check(config: Config) -> None:
    """Read keys, passwords and certificates once. Raises ConfigError, which shows none of them."""
    if config.authorizationEnabled and not config.authenticationEnabled:
        raise ConfigError("", "authorizationEnabled", "needs authenticationEnabled=true: roles have to be proved first")
    if config.authenticationEnabled and config.authenticationProviders:
        Authentication(config, lambda: 0)
    if config.has_tls:
        context_of(config)
