"""Who the client is: what CONNECT shows, and what answers AUTH_CHALLENGE.

Secrets are in no repr, no log and no error.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pulsarium.client.errors import ConnectError, InvalidConfiguration

TokenSupplier: TypeAlias = Callable[[], str | Awaitable[str]]


class Authentication:
    """Base of the ways to authenticate; alone it authenticates nobody."""

    auth_method_name = "none"
    """As the broker's provider is called."""
    certificate: tuple[str, str] | None = None
    """PEM files of a certificate and its private key, to be shown in the TLS handshake."""

    async def auth_data(self) -> bytes:
        """What proves it now: asked for with each connection and with each AUTH_CHALLENGE (PIP-55).

        What it raises becomes a ConnectError, after which it is asked again.
        """
        return b""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


async def credentials_of(authentication: Authentication | None, address: str) -> tuple[str, bytes]:
    """The method, and what it shows now to the broker at `address`; ConnectError if that cannot be had."""
    if authentication is None:
        return "none", b""
    try:
        return authentication.auth_method_name, await authentication.auth_data()
    except Exception as error:  # the application's own: its text may say more than others should read
        raise ConnectError(f"{address}: no credentials ({type(error).__name__})") from error


class AuthenticationToken(Authentication):
    """A JSON Web Token (tokenSecretKey, tokenPublicKey), or another that the broker takes."""

    auth_method_name = "token"

    def __init__(self, token: str | TokenSupplier) -> None:
        """`token`, or what gives one, plain or async: it is called whenever one is needed, on the event loop."""
        if not token:
            raise InvalidConfiguration("an empty token")
        self._token = token

    async def auth_data(self) -> bytes:
        token = self._token if isinstance(self._token, str) else self._token()
        return (await token if inspect.isawaitable(token) else token).encode()


class AuthenticationBasic(Authentication):
    """User and password, as in the broker's basicAuthConf."""

    def __init__(self, username: str, password: str, method: str = "basic") -> None:
        """`method`: how the broker calls its provider."""
        if ":" in username:
            raise InvalidConfiguration("a user's name has no colon")
        self.auth_method_name = method
        self._data = f"{username}:{password}".encode()

    async def auth_data(self) -> bytes:
        return self._data


class AuthenticationTLS(Authentication):
    """The client's certificate: its subject's CN is the role."""

    auth_method_name = "tls"

    def __init__(self, certificate_path: str, private_key_path: str) -> None:
        self.certificate: tuple[str, str] | None = (certificate_path, private_key_path)
