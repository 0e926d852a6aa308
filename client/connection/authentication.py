"""Authenticate the client, in CONNECT and in answer to AUTH_CHALLENGE.

Secrets appear in no repr, no log and no error.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pulsarium.client.errors import ConnectError, InvalidConfiguration

TokenSupplier: TypeAlias = Callable[[], str | Awaitable[str]]


class Authentication:
    """Base class of authentication methods. Subclass it for a method of your own."""

    auth_method_name = "none"
    """The name of the broker's authentication provider."""
    certificate: tuple[str, str] | None = None
    """The PEM files of a certificate and its private key, for the TLS handshake."""

    async def auth_data(self) -> bytes:
        """Return the current credentials. Called for each connection and each AUTH_CHALLENGE (PIP-55).

        An exception becomes a ConnectError, after which the client tries again.
        """
        return b""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


async def credentials_of(authentication: Authentication | None, address: str) -> tuple[str, bytes]:
    """Return the method and the current credentials for the broker at `address`.

    Raise `ConnectError` when the authentication fails to give credentials.
    """
    if authentication is None:
        return "none", b""
    try:
        return authentication.auth_method_name, await authentication.auth_data()
    except Exception as error:  # of the application: its text may contain secrets
        raise ConnectError(
            f"{address}: the authentication failed to give credentials ({type(error).__name__})"
        ) from error


class AuthenticationToken(Authentication):
    """Authentication with a JSON Web Token, or another token that the broker accepts."""

    auth_method_name = "token"

    def __init__(self, token: str | TokenSupplier) -> None:
        """Set the token.

        Args:
            token: The token, or a plain or async function that returns it. The function is called on the event loop
                each time a token is needed.

        Raises:
            InvalidConfiguration: The token is empty.
        """
        if not token:
            raise InvalidConfiguration("the token is empty")
        self._token = token

    async def auth_data(self) -> bytes:
        token = self._token if isinstance(self._token, str) else self._token()
        return (await token if inspect.isawaitable(token) else token).encode()


class AuthenticationBasic(Authentication):
    """Authentication with a user and a password, as in the broker's basicAuthConf."""

    def __init__(self, username: str, password: str, method: str = "basic") -> None:
        """Set the user and the password.

        Args:
            username: The name of the user, without a colon.
            password: The password.
            method: The name of the broker's authentication provider.

        Raises:
            InvalidConfiguration: The name of the user contains a colon.
        """
        if ":" in username:
            raise InvalidConfiguration("the name of the user contains a colon")
        self.auth_method_name = method
        self._data = f"{username}:{password}".encode()

    async def auth_data(self) -> bytes:
        return self._data


class AuthenticationTLS(Authentication):
    """Authentication with a client certificate. The CN of its subject is the role."""

    auth_method_name = "tls"

    def __init__(self, certificate_path: str, private_key_path: str) -> None:
        """Set the PEM files of the certificate and its private key."""
        self.certificate: tuple[str, str] | None = (certificate_path, private_key_path)
