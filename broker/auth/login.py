"""Log in one connection by CONNECT, and renew its credentials by AUTH_RESPONSE (Pulsar's AuthenticationState)."""

from __future__ import annotations

from pulsarium.broker.auth.authentication import Authentication
from pulsarium.broker.auth.authorization import Authorization
from pulsarium.broker.auth.identity import AuthenticationError, Certificate, Identity, Principal
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of


class RolesRefused(Exception):
    """Error for good credentials whose roles do not go together. The client gets the text as an AuthorizationError."""


class Stale(Exception):
    """Error for credentials that expired and cannot be renewed. The broker closes the connection without an answer."""


class Login:
    """A connection that proved its role.

    The constructor raises `AuthenticationError` or `RolesRefused` for a CONNECT that proves none.
    """

    def __init__(
        self,
        authentication: Authentication,
        authorization: Authorization | None,
        connect: pb.CommandConnect,
        certificate: Certificate | None,
    ) -> None:
        self._authentication = authentication
        self._certificate = certificate
        self._supports_refresh = connect.feature_flags.supports_auth_refresh
        self._challenged = False
        self.method = _method(connect)
        self._provider = authentication.provider(self.method)  # of the credentials that are renewed
        self._identity = Identity(None)
        self._renews_original = False
        self.principal = self._log_in(connect)
        if authorization is None:
            return
        if not authorization.is_valid(self.principal, equal=False):
            raise RolesRefused("Invalid roles.")
        if connect.HasField("proxy_version") and not authorization.is_proxy(self.principal.role):
            raise RolesRefused("Must not set proxyVersion without connecting as a ProxyRole.")

    def _log_in(self, connect: pb.CommandConnect) -> Principal:
        if self._provider is None:
            return Principal(self._anonymous(self.method))
        self._identity = self._provider.authenticate(connect.auth_data, self._certificate)
        role = self._identity.role
        original = text_of(connect.original_principal) if connect.HasField("original_principal") else None
        if original is None or not self._authentication.checks_original:
            return Principal(role, original or None)
        method = connect.original_auth_method if connect.HasField("original_auth_method") else "none"
        provider = self._authentication.provider(method)
        if provider is None:
            anonymous = self._anonymous(method)
            return Principal(anonymous, anonymous)
        self._identity = provider.authenticate(text_of(connect.original_auth_data).encode(), self._certificate)
        self._provider, self._renews_original = provider, True
        return Principal(role, self._identity.role)

    def _anonymous(self, method: str) -> str:
        """Return anonymousUserRole, for a method without a provider.

        Raise `AuthenticationError` when the key is not set.
        """
        if self._authentication.anonymous is None:
            raise AuthenticationError(f"no provider for the method {method!r}, and no anonymousUserRole is set")
        return self._authentication.anonymous

    @property
    def renewable(self) -> bool:
        """Return whether the connection has credentials that may expire."""
        return self._provider is not None

    def check(self) -> bool:
        """Return whether the client must be challenged now (authenticationRefreshCheckSeconds).

        Raise `Stale` when the client cannot renew its expired credentials, or did not answer the last challenge.
        """
        expires = self._identity.expires_ms
        if expires is None or expires >= self._authentication.now_ms():
            return False
        if self.principal.original is not None and not self._renews_original:
            raise Stale("credentials expired, and the proxy does not pass on new ones")
        if not self._supports_refresh:
            raise Stale("credentials expired, and the client cannot renew them")
        if self._challenged:
            raise Stale("credentials expired, and AUTH_CHALLENGE was not answered in time")
        self._challenged = True
        return True

    def renew(self, data: bytes) -> None:
        """Take the new credentials of AUTH_RESPONSE.

        Raise `AuthenticationError` when they prove no role, and `Stale` when they prove another role.
        """
        self._challenged = False
        if self._provider is None:
            raise AuthenticationError("an anonymous client has nothing to renew")
        identity = self._provider.authenticate(data, self._certificate)
        if self._identity.role and identity.role != self._identity.role:
            raise Stale("the role cannot change when credentials are renewed")
        self._identity = identity


def _method(connect: pb.CommandConnect) -> str:
    """Return auth_method_name, or the name of the number that old clients send in place of it."""
    if connect.HasField("auth_method_name"):
        return connect.auth_method_name
    if connect.HasField("auth_method"):
        return pb.AuthMethod.Name(connect.auth_method).removeprefix("AuthMethod").lower()
    return "none"
