"""broker.conf and --set -> Config."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import ConfigError
from .keys import Config, Key, documented_keys

if TYPE_CHECKING:
    from .properties import Setting


class LoadedConfig(NamedTuple):
    """A Config and what was said beside it.

    ignored: keys of the file that Pulsarium does not have, in the order of the file, each once.
    places: where each key that was set stands: "broker.conf:12" or "--set".
    """

    config: Config
    ignored: tuple[str, ...] = ()
    places: Mapping[str, str] = MappingProxyType({})


def load(path: Path | None, overrides: Sequence[str] = ()) -> LoadedConfig:
    """Reads a broker.conf or standalone.conf (None: no file), then "key=value" texts on top of it.

    As in Pulsar, a blank value leaves the default and the last of two equal keys wins. Raises ConfigError.
    """
    if path is None and not overrides:
        return LoadedConfig(Config())  # most runs: they need not wait for what reads files to be imported
    known = documented_keys()
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    foreign: dict[str, None] = {}
    for setting in _read(path) if path else ():
        if setting.key in known:
            _put(known[setting.key], setting.value, f"{path}:{setting.line}", values, places)
        else:
            foreign[setting.key] = None
    for override in overrides:
        name, equals, value = (part.strip() for part in override.partition("="))
        if not equals or not name:
            secret = any(override.startswith(key.name) for key in known.values() if key.meaning.secret)
            raise ConfigError("--set", "", f"{'***' if secret else repr(override)} is not key=value")
        if name not in known:
            raise ConfigError("--set", name, _unknown(name, known))
        _put(known[name], value, "--set", values, places)
    config = Config(**values)
    _check_listeners(config, places)
    return LoadedConfig(config, tuple(foreign), places)


def _read(path: Path) -> "list[Setting]":
    from .properties import PropertiesError, parse

    try:
        # Latin-1 is what java.util.Properties reads; every byte is valid in it.
        return parse(path.read_text(encoding="latin-1"))
    except OSError as error:
        raise ConfigError(str(path), "", f"cannot be read: {error.strerror}") from None
    except PropertiesError as error:
        raise ConfigError(f"{path}:{error.line}", "", str(error)) from None


def _put(key: Key, text: str, place: str, values: dict[str, Any], places: dict[str, str]) -> None:
    from .values import read_value

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
    from .listeners import parse_listeners

    try:
        listeners = parse_listeners(config.advertisedListeners)
    except ValueError as error:
        raise ConfigError(places["advertisedListeners"], "advertisedListeners", str(error)) from None
    if config.internalListenerName and config.internalListenerName not in listeners:
        reason = f"{config.internalListenerName!r} is not a listener of advertisedListeners ({', '.join(listeners)})"
        raise ConfigError(places["internalListenerName"], "internalListenerName", reason)


def _unknown(name: str, known: Mapping[str, Key]) -> str:
    import difflib  # wanted only for this message

    lower = {each.lower(): each for each in known}
    near = [lower[each] for each in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.7)]
    return "no such key" + (f"; did you mean {' or '.join(near)}?" if near else " among those that have an effect here")
