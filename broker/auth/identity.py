"""What a client shows, who that makes it, and what proves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

Certificate = Mapping[str, Any]  # a peer's that was verified, as ssl.SSLObject.getpeercert gives it


class AuthenticationError(Exception):
    """Credentials that prove nothing. The text says why, never what they were; binary clients are not told it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A proven role. None: of a token that names none, who may do what anybody may.

    expires_ms: when the proof ends; None: never.
    """

    role: str | None
    expires_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Principal:
    """Who a request is from: the role that was proved, and if that is a proxy's the one that it speaks for."""

    role: str | None
    original: str | None = None

    def __str__(self) -> str:
        return str(self.original if self.original is not None else self.role)


NOBODY: Final = Principal(None)


@dataclass(frozen=True, slots=True)
class HttpCredentials:
    """What of an HTTP request may prove a role. `headers` by lower-case names."""

    headers: Mapping[str, str] = field(repr=False)
    query: Mapping[str, str] = field(repr=False)
    certificate: Certificate | None = None

    @property
    def authorization(self) -> str:
        return self.headers.get("authorization", "")


class Provider(Protocol):
    """One way to prove a role (Pulsar's AuthenticationProvider)."""

    method: str  # CONNECT.auth_method_name

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Identity:
        """The role that CONNECT's auth_data proves. Raises AuthenticationError."""
        ...

    def authenticate_http(self, request: HttpCredentials) -> Identity:
        """The same of a request. Raises AuthenticationError."""
        ...
