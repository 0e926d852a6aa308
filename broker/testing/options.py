"""What a test asks of its broker, in the words of `pulsarium serve`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pulsarium.broker.auth.setup import check
from pulsarium.broker.config import PROFILES, ConfigError, Durability, Profile, ServeOptions, load

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
    given = load(
        None if config is None else Path(config), [f"{key}={_text(value)}" for key, value in (set or {}).items()]
    )
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
        profile=_profile(profile, max_protocol_version),
        data=None if data is None else Path(data),
        durability=durability,
        brokers=brokers,
    )


def _text(value: object) -> str:
    """As broker.conf writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _profile(name: str, max_protocol_version: int | None) -> Profile:
    if name not in PROFILES:
        raise ConfigError("profile", "", f"{name!r} is none of {', '.join(PROFILES)}")
    profile = PROFILES[name]
    if max_protocol_version is None:
        return profile
    if not 0 <= max_protocol_version <= profile.max_protocol_version:
        raise ConfigError(
            "max_protocol_version", "", f"{max_protocol_version} is not of 0 to {profile.max_protocol_version} ({name})"
        )
    return replace(profile, max_protocol_version=max_protocol_version)
