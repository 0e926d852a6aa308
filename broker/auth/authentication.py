"""Authenticate clients by the providers of authenticationProviders, or give them anonymousUserRole."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from pulsarium.broker.auth.identity import AuthenticationError, Certificate, HttpCredentials, Identity, Provider
from pulsarium.broker.auth.tls import context_of
from pulsarium.broker.config.keys import AUTHENTICATION_PROVIDERS, Config
from pulsarium.broker.config.meaning import ConfigError
from pulsarium.broker.logs import PartLog

if TYPE_CHECKING:
    from pulsarium.broker.auth.tokens import TokenProvider


class CertificateProvider:
    """The provider of method tls: it takes the role from the certificate that TLS has verified."""

    method = "tls"

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Identity:
        if certificate is None:
            raise AuthenticationError("Failed to get TLS certificates from client")
        # Java reads the name from its end (RFC 2253): of several common names the last one counts.
        for part in reversed(certificate.get("subject", ())):
            for name, value in part:
                if name == "commonName" and value:
                    return Identity(value)
        raise AuthenticationError("Client unable to authenticate with TLS certificate")

    def authenticate_http(self, request: HttpCredentials) -> Identity:
        return self.authenticate(b"", request.certificate)


log = PartLog("auth")

METHOD_HEADER = "x-pulsar-auth-method-name"


class Authentication:
    """The authentication of a broker with authenticationEnabled. Raise `ConfigError` when a provider cannot be made."""

    def __init__(self, config: Config, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.anonymous = (config.anonymousUserRole or "").strip() or None
        self.checks_original = config.authenticateOriginalAuthData
        self._strict = config.strictAuthMethod
        # Pulsar asks the providers in the order of their names.
        found = [_provider(name, config, now_ms) for name in sorted(set(config.authenticationProviders))]
        self._providers = {provider.method: provider for provider in found}
        self.tokens = cast("TokenProvider | None", self._providers.get("token"))
        if not found:
            log.warning("no client can prove a role with authenticationEnabled: set authenticationProviders")

    def provider(self, method: str) -> Provider | None:
        """Return the provider of CONNECT's auth_method_name, or None."""
        return self._providers.get(method)

    def of_request(self, request: HttpCredentials) -> Identity:
        """Return the identity that an HTTP request proves. Raise `AuthenticationError` when it proves none."""
        method = request.headers.get(METHOD_HEADER)
        if method is not None:
            provider = self._providers.get(method)
            if provider is None:
                raise AuthenticationError("Unsupported authentication method")
            return provider.authenticate_http(request)
        if self._strict:
            raise AuthenticationError("Authentication method missing")
        for provider in self._providers.values():
            try:
                return provider.authenticate_http(request)
            except AuthenticationError as error:
                if log.debug_enabled:
                    log.debug("a provider refused the request", method=provider.method, reason=error)
        if self._providers and self.anonymous is None:
            raise AuthenticationError("Authentication required")
        return Identity(self.anonymous)


def _provider(name: str, config: Config, now_ms: Callable[[], int]) -> Provider:
    # Without authenticationEnabled, Pulsar does not read these names: any name may stand in the file.
    if name not in AUTHENTICATION_PROVIDERS:
        reason = f"{name!r} is not one of {', '.join(AUTHENTICATION_PROVIDERS)}"
        raise ConfigError("", "authenticationProviders", reason)
    # Imported here, because the packages that they need are not installed with every broker.
    if name.endswith("Token"):
        from pulsarium.broker.auth.tokens import TokenProvider

        return TokenProvider(config, now_ms)
    if name.endswith("Basic"):
        from pulsarium.broker.auth.passwords import PasswordProvider

        return PasswordProvider(config)
    return CertificateProvider()


def check(config: Config) -> None:
    """Read keys, passwords and certificates once. Raise `ConfigError`, which shows no secret."""
    if config.authorizationEnabled and not config.authenticationEnabled:
        raise ConfigError(
            "",
            "authorizationEnabled",
            "needs authenticationEnabled=true: only proved roles have rights",
        )
    if config.authenticationEnabled and config.authenticationProviders:
        Authentication(config, lambda: 0)
    if config.has_tls:
        context_of(config)
