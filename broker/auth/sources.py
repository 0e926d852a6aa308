"""Read keys and passwords from file:, data:, a path, or base64."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from pulsarium.broker.config.meaning import ConfigError
from pulsarium.proto.errors import MissingExtra, needs

FORMS = "give file:///path, data:;base64,..., the path of a file, or base64"
# A value with such an ending is the name of a file and no secret: base64 has no dot.
_FILE_NAME = re.compile(r"[\w ./~-]+\.(key|pem|pub|der|crt|jwk|jwks|json|txt|bin|conf|htpasswd|passwd)")


def read_source(key: str, value: str) -> bytes:
    """Return the bytes that a setting leads to, as Pulsar reads keys.

    Raise `ConfigError`, which does not show the value.
    """
    value = value.strip()
    if value.startswith("data:"):
        return _data(key, value)
    path = file_of(value)
    return _base64(key, value) if path is None else _file(key, path)


def file_of(value: str) -> Path | None:
    """Return the file that a setting names, or None for another form."""
    if value.startswith("file:"):
        return Path(os.fsdecode(unquote_to_bytes(urlsplit(value).path)))
    return Path(value) if names_file(value) else None


def names_file(value: str) -> bool:
    """Return whether a setting is the URL or the path of a file, and no secret itself."""
    return value.startswith("file:") or _is_file(value) or _FILE_NAME.fullmatch(value) is not None


def cannot_be_read(path: str, error: OSError) -> str:
    """Return why a file cannot be read, and the folder in which a relative path was looked up."""
    if isinstance(error, FileNotFoundError) and not os.path.isabs(path):
        where = f"{os.getcwd()}, the folder of relative paths"
        return f"no file {path} in {where}; start in the folder of the file, or write the absolute path"
    return f"{path} cannot be read: {error.strerror}"


def _data(key: str, value: str) -> bytes:
    head, comma, content = value.removeprefix("data:").partition(",")
    if not comma:
        raise ConfigError("", key, f"this data: URL has no comma before its content; {FORMS}")
    decoded = unquote_to_bytes(content)
    return _base64(key, decoded.decode("latin-1")) if head.endswith(";base64") else decoded


def _is_file(value: str) -> bool:
    try:
        return Path(value).is_file()
    except (OSError, ValueError):  # too long, or not a path at all
        return False


def _file(key: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError("", key, cannot_be_read(str(path), error)) from None
    except ValueError:  # a null byte
        raise ConfigError("", key, f"is not the path of a file; {FORMS}") from None


def _base64(key: str, text: str) -> bytes:
    text = "".join(text.split())
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)  # Java accepts a missing padding too
    except ValueError:  # binascii.Error, or letters beyond ASCII
        raise ConfigError("", key, f"is neither a file nor base64; {FORMS}") from None


@contextmanager
def needs_extra(what: str) -> Iterator[None]:
    """Raise `ConfigError`, with the extra to install, when an import inside fails."""
    try:
        with needs(what, "auth"):
            yield
    except MissingExtra as error:
        raise ConfigError("", "authenticationProviders", str(error)) from None
