"""Who a client is: the providers of authenticationProviders, and the role of those who prove none."""

from __future__ import annotations

from collections.abc import Callable

from pulsarium.broker.auth.identity import AuthenticationError, Certificate, HttpCredentials, Identity, Provider
from pulsarium.broker.auth.tls import context_of
from pulsarium.broker.config.keys import AUTHENTICATION_PROVIDERS, Config
from pulsarium.broker.config.meaning import ConfigError
from pulsarium.broker.logs import Log


class CertificateProvider:
    """Takes the certificates that TLS has verified."""

    method = "tls"

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Identity:
        if certificate is None:
            raise AuthenticationError("Failed to get TLS certificates from client")
        # Java reads the name from its end (RFC 2253): of several common names the last one counts
        for part in reversed(certificate.get("subject", ())):
            for name, value in part:
                if name == "commonName" and value:
                    return Identity(value)
        raise AuthenticationError("Client unable to authenticate with TLS certificate")

    def authenticate_http(self, request: HttpCredentials) -> Identity:
        return self.authenticate(b"", request.certificate)


log = Log("auth")

METHOD_HEADER = "x-pulsar-auth-method-name"


class Authentication:
    """Made at the start of a broker that has authenticationEnabled. Raises ConfigError."""

    def __init__(self, config: Config, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.anonymous = (config.anonymousUserRole or "").strip() or None
        self.checks_original = config.authenticateOriginalAuthData
        self.refresh_seconds = config.authenticationRefreshCheckSeconds
        self._strict = config.strictAuthMethod
        # in the order of their names, as Pulsar asks them
        found = [_provider(name, config, now_ms) for name in sorted(set(config.authenticationProviders))]
        self._providers = {provider.method: provider for provider in found}
        if not found:
            log.warning("authenticationEnabled without authenticationProviders: no client can prove a role")

    def provider(self, method: str) -> Provider | None:
        """The provider of CONNECT's auth_method_name."""
        return self._providers.get(method)

    def of_request(self, request: HttpCredentials) -> Identity:
        """The role of an HTTP request. Raises AuthenticationError."""
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
                    log.debug("a provider takes no request", method=provider.method, reason=error)
        if self._providers and self.anonymous is None:
            raise AuthenticationError("Authentication required")
        return Identity(self.anonymous)


def _provider(name: str, config: Config, now_ms: Callable[[], int]) -> Provider:
    # without authenticationEnabled any name stands there unread, as in Pulsar
    if name not in AUTHENTICATION_PROVIDERS:
        reason = f"{name!r} is not among {', '.join(AUTHENTICATION_PROVIDERS)}"
        raise ConfigError("", "authenticationProviders", reason)
    # imported where they are wanted: what they need is not installed with every broker
    if name.endswith("Token"):
        from pulsarium.broker.auth.tokens import TokenProvider

        return TokenProvider(config, now_ms)
    if name.endswith("Basic"):
        from pulsarium.broker.auth.passwords import PasswordProvider

        return PasswordProvider(config)
    return CertificateProvider()


def check(config: Config) -> None:
    """Read keys, passwords and certificates once. Raises ConfigError, which shows none of them."""
    if config.authorizationEnabled and not config.authenticationEnabled:
        raise ConfigError("", "authorizationEnabled", "needs authenticationEnabled=true: roles have to be proved first")
    if config.authenticationEnabled and config.authenticationProviders:
        Authentication(config, lambda: 0)
    if config.has_tls:
        context_of(config)
