"""broker.conf and --set -> Config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from pulsarium.broker.config.errors import ConfigError
from pulsarium.broker.config.keys import Config, Key, documented_keys
from pulsarium.broker.config.profile import PIP, Profile
from pulsarium.proto.text import did_you_mean, printable

if TYPE_CHECKING:
    from pulsarium.broker.config.properties import Setting


class LoadedConfig(NamedTuple):
    """A Config and what was said beside it.

    ignored: keys of the file that Pulsar has and Pulsarium does not, in the order of the file, each once.
    unknown: keys that Pulsar has not either, each with its place and what may have been meant.
    places: where each key that was set stands: "broker.conf:12" or "--set".
    """

    config: Config
    ignored: tuple[str, ...] = ()
    places: Mapping[str, str] = MappingProxyType({})
    unknown: tuple[str, ...] = ()


def load(path: Path | None, overrides: Sequence[str] = (), profile: Profile = PIP) -> LoadedConfig:
    """Reads a broker.conf or standalone.conf (None: no file), then "key=value" texts on top of it.

    What neither has is as `profile` has it. As in Pulsar, a blank value leaves the default and the last of two equal
    keys wins. Raises ConfigError.
    """
    if path is None and not overrides:
        return LoadedConfig(_config(profile, {}))  # most runs: they need not wait for what reads files to be imported
    known = documented_keys()
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    foreign: dict[str, int] = {}
    for setting in _read(path) if path else ():
        if setting.key in known:
            _put(known[setting.key], setting.value, f"{path}:{setting.line}", values, places)
        else:
            foreign.setdefault(setting.key, setting.line)
    for override in overrides:
        name, equals, value = (part.strip() for part in override.partition("="))
        if not equals or not name:
            secret = any(override.startswith(key.name) for key in known.values() if key.meaning.secret)
            raise ConfigError("--set", "", f"{'***' if secret else repr(override)} is not key=value")
        if name not in known:
            raise ConfigError("--set", name, _why_not(name, known))
        _put(known[name], value, "--set", values, places)
    config = _config(profile, values)
    _check_listeners(config, places)
    if not foreign:
        return LoadedConfig(config, places=places)
    from pulsarium.broker.config.pulsar_keys import is_of_pulsar

    unknown = tuple(_unknown(key, f"{path}:{line}") for key, line in foreign.items() if not is_of_pulsar(key))
    return LoadedConfig(config, tuple(filter(is_of_pulsar, foreign)), places, unknown)


def _config(profile: Profile, values: Mapping[str, Any]) -> Config:
    given: dict[str, Any] = {**dict(profile.defaults), **values}
    return Config(**given)


def _read(path: Path) -> list[Setting]:
    from pulsarium.broker.config.properties import PropertiesError, parse

    try:
        # Latin-1 is what java.util.Properties reads; every byte is valid in it.
        text = path.read_text(encoding="latin-1")
    except OSError as error:
        raise ConfigError(f"--config {path}", "", f"cannot be read: {error.strerror}") from None
    if "\0" in text:
        raise ConfigError(f"--config {path}", "", "is a binary file; a broker.conf is text, key=value on each line")
    try:
        return parse(text)
    except PropertiesError as error:
        raise ConfigError(f"{path}:{error.line}", "", str(error)) from None


def _put(key: Key, text: str, place: str, values: dict[str, Any], places: dict[str, str]) -> None:
    from pulsarium.broker.config.values import read_value

    values.pop(key.name, None)
    places[key.name] = place
    if not text.strip():
        return
    try:
        values[key.name] = read_value(key, text)
    except ValueError as error:
        raise ConfigError(place, key.name, str(error)) from None


def _check_listeners(config: Config, places: Mapping[str, str]) -> None:
    if not config.advertisedListeners:
        return
    from pulsarium.broker.config.listeners import parse_listeners

    try:
        listeners = parse_listeners(config.advertisedListeners)
    except ValueError as error:
        raise ConfigError(places["advertisedListeners"], "advertisedListeners", str(error)) from None
    if config.internalListenerName and config.internalListenerName not in listeners:
        reason = f"{config.internalListenerName!r} is not a listener of advertisedListeners ({', '.join(listeners)})"
        raise ConfigError(places["internalListenerName"], "internalListenerName", reason)


def _why_not(name: str, known: Iterable[str]) -> str:
    """Return why --set does not take a key."""
    from pulsarium.broker.config.pulsar_keys import is_of_pulsar

    if is_of_pulsar(name):
        return "this key of Pulsar has no effect here; leave it out"
    return f"no such key; {did_you_mean(name, known) or 'Pulsar does not have it either'}"


def _unknown(name: str, place: str) -> str:
    """Return a key of a file that nobody has, with its place and what may have been meant."""
    from pulsarium.broker.config.pulsar_keys import PULSAR_KEYS

    meant = did_you_mean(name, PULSAR_KEYS)
    return f"{printable(name)} ({place}{'; ' + meant if meant else ''})"
