"""Read broker.conf as java.util.Properties does, and --set, into a Config."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pulsarium.broker.config.keys import Config, Key, documented_keys
from pulsarium.broker.config.meaning import ConfigError
from pulsarium.broker.config.profile import PIP, Profile
from pulsarium.broker.config.proposals import remedy
from pulsarium.proto.text import did_you_mean, printable

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Setting(NamedTuple):
    """A setting from one logical line.

    `line` counts from 1 and is where the key stands; the value may continue below it.
    """

    key: str
    value: str
    line: int


class PropertiesError(ValueError):
    """Error for a backslash-u without four hexadecimal digits: nothing else can be wrong with a properties file."""

    def __init__(self, line: int) -> None:
        super().__init__("a \\u must have four hexadecimal digits after it")
        self.line = line


def parse(text: str) -> list[Setting]:
    """Return all settings in the order of the file, duplicates included. Raise `PropertiesError` for a bad escape."""
    return [_setting(logical, line) for logical, line in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    """Join lines that end in an odd number of backslashes. Drop blank lines, comments and leading blanks."""
    parts: list[str] = []
    first = 0
    continued = False  # the line before ended in a backslash, even if it held nothing else
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = natural.lstrip(_BLANK)
        if not any(parts):
            # Nothing collected yet: a comment or a blank line here is not part of the setting, also after a lone
            # backslash.
            if line.startswith(("#", "!")) or not (line or continued):
                continued = False
                continue
            parts, first = [], number
        backslashes = len(line) - len(line.rstrip("\\"))
        continued = backslashes % 2 == 1
        parts.append(line[:-1] if continued else line)
        if not continued:
            if any(parts):
                yield "".join(parts), first
            parts = []
    if any(parts):
        yield "".join(parts), first


def _setting(logical: str, line: int) -> Setting:
    end = 0
    while end < len(logical) and logical[end] not in "=:" + _BLANK:
        end += 2 if logical[end] == "\\" else 1
    end = min(end, len(logical))
    rest = logical[end:].lstrip(_BLANK)
    if rest.startswith(("=", ":")):
        rest = rest[1:].lstrip(_BLANK)
    return Setting(_unescape(logical[:end], line), _unescape(rest, line), line)


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\":
            out.append(text[at])
            at += 1
            continue
        escaped = text[at + 1 : at + 2]
        if escaped == "u":
            digits = text[at + 2 : at + 6]
            if len(digits) < 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise PropertiesError(line)
            out.append(chr(int(digits, 16)))
            at += 6
        else:
            out.append(_ESCAPES.get(escaped, escaped))
            at += 2
    return "".join(out)


class LoadedConfig(NamedTuple):
    """A Config, and facts about the keys that it was made from.

    ignored: keys of the file that Pulsar has and Pulsarium does not, in the order of the file, each once. Nothing is
    lost without them.
    places: the place of each key that was set: "broker.conf:12" or "--set".
    unknown: keys that no release of Pulsar has, each with its place and a suggestion.
    elsewhere: keys that only other releases than the profile's have, each with these releases.
    missing: keys that ask for something that Pulsarium does not have or that is off, and what does not work.
    """

    config: Config
    ignored: tuple[str, ...] = ()
    places: Mapping[str, str] = MappingProxyType({})
    unknown: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()


def load(path: Path | None, overrides: Sequence[str] = (), profile: Profile = PIP) -> LoadedConfig:
    """Read a broker.conf or standalone.conf (None: no file), then "key=value" texts on top of it.

    The defaults of `profile` apply to keys that neither sets. As in Pulsar, a blank value leaves the default, and the
    last of two equal keys wins. Raise `ConfigError` for a setting that cannot be used.
    """
    if path is None and not overrides:
        return LoadedConfig(_config(profile, {}))  # the usual run: it imports nothing that only files need
    known = documented_keys()
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    foreign: dict[str, Setting] = {}
    for setting in _read(path) if path else ():
        if setting.key in known:
            _put(known[setting.key], setting.value, f"{path}:{setting.line}", values, places)
        else:
            first = foreign.setdefault(setting.key, setting)
            foreign[setting.key] = setting._replace(line=first.line)
    for override in overrides:
        name, equals, value = (part.strip() for part in override.partition("="))
        if not equals or not name:
            secret = any(override.startswith(key.name) for key in known.values() if key.meaning.secret)
            raise ConfigError("--set", "", f"{'***' if secret else repr(override)} is not key=value")
        if name not in known:
            raise ConfigError("--set", name, _why_not(name, known, profile))
        if _is_off(known[name], profile):
            raise ConfigError("--set", name, remedy(known[name].meaning.proposal))
        _put(known[name], value, "--set", values, places)
    off = [known[name] for name in values if _is_off(known[name], profile)]
    idle = tuple((key.name, remedy(key.meaning.proposal)) for key in off if values.pop(key.name) != key.default)
    config = _config(profile, values)
    _check_listeners(config, places)
    loaded = LoadedConfig(config, places=places, missing=idle)
    return _with_foreign(loaded, foreign, str(path), profile) if foreign else loaded


def _with_foreign(loaded: LoadedConfig, foreign: Mapping[str, Setting], path: str, profile: Profile) -> LoadedConfig:
    """Add the keys of a file that Pulsarium does not have, each to the list that says why."""
    from pulsarium.broker.config.missing import missing
    from pulsarium.broker.config.pulsar_keys import releases_of

    lost = dict(missing({key: setting.value for key, setting in foreign.items()}))
    unknown, elsewhere, ignored = [], [], []
    for key, setting in foreign.items():
        releases = releases_of(key)
        if releases is None:
            unknown.append(_unknown(key, f"{path}:{setting.line}"))
        elif not any(map(releases.has, profile.releases)):
            elsewhere.append(f"{key} ({releases})")
        elif key not in lost:
            ignored.append(key)
    return loaded._replace(
        ignored=tuple(ignored),
        unknown=tuple(unknown),
        elsewhere=tuple(elsewhere),
        missing=(*loaded.missing, *lost.items()),
    )


def _is_off(key: Key, profile: Profile) -> bool:
    return key.meaning.proposal != 0 and not profile.has(key.meaning.proposal)


def _config(profile: Profile, values: Mapping[str, Any]) -> Config:
    given: dict[str, Any] = {**dict(profile.defaults), **values}
    return Config(**given)


def _read(path: Path) -> list[Setting]:
    try:
        # java.util.Properties reads Latin-1, in which every byte is valid.
        text = path.read_text(encoding="latin-1")
    except OSError as error:
        raise ConfigError(f"--config {path}", "", f"cannot be read: {error.strerror}") from None
    if "\0" in text:
        raise ConfigError(
            f"--config {path}", "", "is a binary file; broker.conf is a text file with key=value on each line"
        )
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
    internal = config.internalListenerName if "internalListenerName" in places else ""
    if internal and internal not in listeners:
        reason = f"{internal!r} is not a listener of advertisedListeners ({', '.join(listeners)})"
        raise ConfigError(places["internalListenerName"], "internalListenerName", reason)


def _why_not(name: str, known: Iterable[str], profile: Profile) -> str:
    """Return why --set refuses a key."""
    from pulsarium.broker.config.missing import lost_without
    from pulsarium.broker.config.pulsar_keys import releases_of

    releases = releases_of(name)
    if releases is None:
        return f"no such key; {did_you_mean(name, known) or 'Pulsar does not have it either'}"
    if not any(map(releases.has, profile.releases)):
        return f"only Pulsar {releases} has this key, and Pulsarium does not; leave it out"
    lost = lost_without(name)
    return f"Pulsarium does not have this key of Pulsar{': ' if lost else ''}{lost}; leave it out"


def _unknown(name: str, place: str) -> str:
    """Return the name of an unknown key, with its place and a suggestion."""
    from pulsarium.broker.config.pulsar_keys import PULSAR_KEYS

    meant = did_you_mean(name, PULSAR_KEYS)
    return f"{printable(name)} ({place}{'; ' + meant if meant else ''})"
