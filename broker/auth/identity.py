"""Credentials that a client shows, and identities that they prove."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

Certificate = Mapping[str, Any]  # of a peer, verified, as ssl.SSLObject.getpeercert returns it


class AuthenticationError(Exception):
    """Error for credentials that prove no role.

    The text names the reason and never the credentials. Clients of the binary protocol do not see the text.
    `code` is the reason in Pulsar's metrics of authentication.
    """

    def __init__(self, text: str, code: str = "INVALID_TOKEN") -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class Identity:
    """A proven role, and the end of its proof in milliseconds since the epoch (None: never).

    `role` is None for a token without a role. Its client may do only what every role may do.
    """

    role: str | None
    expires_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Principal:
    """The sender of a request: the proved role, and for a proxy the original principal that it speaks for."""

    role: str | None
    original: str | None = None

    def __str__(self) -> str:
        return str(self.original if self.original is not None else self.role)


NOBODY: Final = Principal(None)


@dataclass(frozen=True, slots=True)
class HttpCredentials:
    """The parts of an HTTP request that may prove a role. `headers` has lower-case names."""

    headers: Mapping[str, str] = field(repr=False)
    query: Mapping[str, str] = field(repr=False)
    certificate: Certificate | None = None

    @property
    def authorization(self) -> str:
        return self.headers.get("authorization", "")


class Provider(Protocol):
    """A way to prove a role (Pulsar's AuthenticationProvider)."""

    method: str  # CONNECT.auth_method_name

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Identity:
        """Return the identity that CONNECT's auth_data proves. Raise `AuthenticationError` when it proves none."""
        ...

    def authenticate_http(self, request: HttpCredentials) -> Identity:
        """Return the identity that an HTTP request proves. Raise `AuthenticationError` when it proves none."""
        ...
