"""What a test asks of its broker, in the words of `pulsarium serve`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pulsarium.broker.auth.authentication import check
from pulsarium.broker.config import Durability, ServeOptions, load, profile_of

LOOPBACK = "127.0.0.1"


def options_of(
    *,
    config: str | Path | None = None,
    set: Mapping[str, object] | None = None,
    profile: str = "pip",
    max_protocol_version: int | None = None,
    port: int = 0,
    http_port: int = 0,
    data: str | Path | None = None,
    durability: Durability = "os",
    brokers: int = 1,
) -> ServeOptions:
    """What `running` takes, as the broker takes it. Raises ConfigError for what cannot be."""
    behavior = profile_of(profile, max_protocol_version)
    overrides = [f"{key}={_text(value)}" for key, value in (set or {}).items()]
    given = load(None if config is None else Path(config), overrides, behavior)
    settings = given.config
    if port or "brokerServicePort" not in (set or {}):  # what a file has is for a broker of its own
        settings = replace(settings, brokerServicePort=port)
    if http_port or "webServicePort" not in (set or {}):
        settings = replace(settings, webServicePort=http_port)
    if settings.advertisedAddress is None and settings.bindAddress == LOOPBACK:
        settings = replace(settings, advertisedAddress=LOOPBACK)  # as in service_url: clients need one connection
    check(settings)
    return ServeOptions(
        config=settings,
        profile=behavior,
        data=None if data is None else Path(data),
        durability=durability,
        brokers=brokers,
    )


def _text(value: object) -> str:
    """As broker.conf writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
