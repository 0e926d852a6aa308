"""Authenticate users by an htpasswd file (AuthenticationProviderBasic). The user name is the role."""

from __future__ import annotations

import base64
from typing import Final, Protocol

from pulsarium.broker.auth.identity import AuthenticationError, Certificate, HttpCredentials, Identity
from pulsarium.broker.auth.sources import needs_extra, read_source
from pulsarium.broker.config.keys import Config
from pulsarium.broker.config.meaning import ConfigError
from pulsarium.broker.logs import PartLog

log = PartLog("auth")

APR1: Final = "$apr1$"
UNKNOWN: Final = "Unknown user or invalid password"


class _Verifies(Protocol):
    def verify(self, secret: str | bytes, hash: str) -> bool: ...


class PasswordProvider:
    """The users of basicAuthConf, read once at the start, as in Pulsar."""

    method = "basic"

    def __init__(self, config: Config) -> None:
        with needs_extra("AuthenticationProviderBasic"):
            from passlib.hash import apr_md5_crypt, des_crypt
        self._apr1: _Verifies = apr_md5_crypt
        self._crypt: _Verifies = des_crypt
        if not config.basicAuthConf:
            reason = "is not set, and AuthenticationProviderBasic needs it: name a file that htpasswd wrote"
            raise ConfigError("", "basicAuthConf", reason)
        self._hashes = _users(read_source("basicAuthConf", config.basicAuthConf))
        for user, hashed in self._hashes.items():
            if not (hashed.startswith(APR1) or des_crypt.identify(hashed)):
                log.warning(
                    "a user's password has a hash that Pulsar cannot verify: hash it with htpasswd -m", user=user
                )

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Identity:
        return self._verify(data)

    def authenticate_http(self, request: HttpCredentials) -> Identity:
        words = request.authorization.split(" ")
        if words[0].upper() != "BASIC":
            raise AuthenticationError('Authentication token has to be started with "Basic "')
        if len(words) != 2:
            raise AuthenticationError("Base64 encoded token is not found")
        try:
            padding = "=" * (-len(words[1]) % 4)  # Java accepts a missing padding too
            return self._verify(base64.b64decode(words[1] + padding, validate=True))
        except ValueError:  # binascii.Error, or letters beyond ASCII
            raise AuthenticationError("Base64 decoding is failure") from None

    def _verify(self, data: bytes) -> Identity:
        parts = _split(data.decode("utf-8", "replace"))
        if len(parts) != 2:
            raise AuthenticationError("Base64 decoded params are invalid")
        user, password = parts
        hashed = self._hashes.get(user)
        if hashed is None:
            raise AuthenticationError(UNKNOWN)
        algorithm = self._apr1 if hashed.startswith(APR1) else self._crypt
        try:
            right = algorithm.verify(password, hashed)
        except ValueError:  # a hash of another kind, or a password with a null byte
            right = False
        if not right:
            raise AuthenticationError(UNKNOWN)
        return Identity(user)


def _users(content: bytes) -> dict[str, str]:
    users: dict[str, str] = {}
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1):
        parts = _split(line)
        if len(parts) != 2:
            raise ConfigError("", "basicAuthConf", f"line {number} of the file is not user:hash, as htpasswd writes it")
        users[parts[0]] = parts[1]
    return users


def _split(text: str) -> list[str]:
    """Split as Java's String.split(":") does: without empty parts at the end."""
    parts = text.split(":")
    while parts and not parts[-1]:
        parts.pop()
    return parts
