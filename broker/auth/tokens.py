"""Authenticate JSON Web Tokens (AuthenticationProviderToken). The claim `sub`, or tokenAuthClaim, is the role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pulsarium.broker.auth.identity import AuthenticationError, Certificate, HttpCredentials, Identity
from pulsarium.broker.auth.sources import names_file, needs_extra
from pulsarium.broker.auth.token_keys import JWKS, TokenKey, keys_of, public_key, read_jwks, secret_key
from pulsarium.broker.config.keys import Config
from pulsarium.broker.config.meaning import ConfigError
from pulsarium.broker.logs import PartLog

if TYPE_CHECKING:
    from jwt.types import Options

log = PartLog("auth")

BEARER: Final = "Bearer "
LONGEST_HEADER: Final = 8_192  # characters of a token, where kids choose the key
MANY_KEYS: Final = 16  # a rotation needs two or three; a token without a known kid may be tried with each
FAILED: Final = "Failed to authentication token"  # Pulsar's words
# Reasons of failures, as in Pulsar's metrics. PIP-490 adds the last one.
NO_TOKEN: Final = "INVALID_AUTH_DATA"
INVALID: Final = "INVALID_TOKEN"
AUDIENCE: Final = "INVALID_AUDIENCES"
UNKNOWN_KID: Final = "INVALID_TOKEN_KID"
# The broker's own clock judges times. Beside them, Pulsar looks at the signature and the audience only.
NOTHING_BUT_THE_SIGNATURE: Final[Options] = {"verify_signature": True} | {  # type: ignore[assignment]
    f"verify_{claim}": False for claim in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
}


class TokenProvider:
    """The provider of method token. It verifies tokens with one key, or by their kid with those of a JWKS document."""

    method = "token"

    def __init__(self, config: Config, now_ms: Callable[[], int]) -> None:
        with needs_extra("AuthenticationProviderToken"):
            import jwt
        self._jwt = jwt
        self._faults = (jwt.PyJWTError, ValueError, TypeError, RecursionError)
        self._now_ms = now_ms
        self._skew_ms = 1000 * config.tokenAllowedClockSkewSeconds
        self._role_claim = config.tokenAuthClaim
        self._audience_claim = config.tokenAudienceClaim
        self._audience = config.tokenAudience
        if self._audience_claim and not self._audience:
            raise ConfigError(
                "", "tokenAudience", "is not set, and tokenAudienceClaim needs it: give this broker's name in tokens"
            )
        self._unnamed: TokenKey | None = None  # of tokens without a known kid
        if config.tokenSecretKey:
            self._unnamed = secret_key(config.tokenSecretKey)
        elif config.tokenPublicKey:
            self._unnamed = public_key(config.tokenPublicKey, config.tokenPublicAlg)
        elif not config.tokenValidationKeysJwks:
            reason = "is not set, and AuthenticationProviderToken needs it, or tokenPublicKey"
            raise ConfigError("", "tokenSecretKey", reason)
        self._requires_kid = config.tokenRequireKid
        if self._requires_kid and not config.tokenValidationKeysJwks:
            raise ConfigError("", "tokenRequireKid", f"needs {JWKS}: without it, no key has a kid")
        self._jwks = config.tokenValidationKeysJwks
        if config.tokenValidationKeysRefreshSeconds and not (self._jwks and names_file(self._jwks)):
            raise ConfigError("", "tokenValidationKeysRefreshSeconds", f"needs a file in {JWKS}: nothing else changes")
        self._reload_seconds = config.tokenValidationKeysRefreshSeconds if self._jwks else 0  # 0: never
        self._document = b""
        self._by_kid: dict[str, TokenKey] = {}  # replaced as a whole
        self._reload_error = ""
        self._counts: Counter[str] = Counter()  # of failures by reason; "" for successes
        self._reload_failures = 0
        if self._jwks:
            self._load(self._jwks)

    def _load(self, jwks: str) -> bool:
        """Read the keys, and return whether the document has changed."""
        document = read_jwks(jwks)
        if document == self._document:
            return False
        self._by_kid, self._document = keys_of(document), document
        return True

    def watch(self, every: Callable[[float, Callable[[], None]], object]) -> None:
        """Begin to read tokenValidationKeysJwks again at its interval, with the timers of `every`."""
        self._warn_of_many()
        if self._reload_seconds:
            every(self._reload_seconds, self.reload)

    def _warn_of_many(self) -> None:
        if len(self._by_kid) > MANY_KEYS and not self._requires_kid:
            log.warning(
                "a token without a known kid may be tried with very many keys; remove old keys from "
                "tokenValidationKeysJwks, or set tokenRequireKid",
                count=len(self._by_kid),
            )

    def reload(self) -> None:
        """Read tokenValidationKeysJwks again. Keep the keys when the document cannot be used."""
        try:
            changed = self._load(self._jwks or "")
        except ConfigError as error:
            self._reload_failures += 1
            if error.reason != self._reload_error:  # once, and not at each interval
                log.warning("the changed keys of tokens cannot be used; the broker keeps the old ones", reason=error)
            self._reload_error = error.reason
            return
        self._reload_error = ""
        if changed:
            log.info("the changed keys of tokens are in use", count=len(self._by_kid))
            self._warn_of_many()

    def samples(self) -> Iterator[tuple[str, dict[str, str], int]]:
        """Yield metrics under Pulsar's names: each with its labels and value."""
        labels = {"provider_name": "AuthenticationProviderToken", "auth_method": self.method}
        for reason, count in self._counts.items():
            if reason:
                yield "pulsar_authentication_failures_total", {**labels, "reason": reason}, count
            else:
                yield "pulsar_authentication_success_total", labels, count
        if self._jwks:
            yield "pulsar_authentication_token_keys", {}, len(self._by_kid)
            yield "pulsar_authentication_token_keys_reload_failures_total", {}, self._reload_failures

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Identity:
        return self._counted(lambda: data.decode("utf-8", "replace"))

    def authenticate_http(self, request: HttpCredentials) -> Identity:
        """Return the identity of the token in `Authorization: Bearer`.

        Without that header, take ?token= (for browsers).
        """
        return self._counted(lambda: _token_of(request))

    def _counted(self, token: Callable[[], str]) -> Identity:
        try:
            identity = self._verify(token())
        except AuthenticationError as error:
            self._counts[error.code] += 1
            raise
        self._counts[""] += 1
        return identity

    def _verify(self, token: str) -> Identity:
        claims = self.claims(token)
        self._check_audience(claims)
        return Identity(_role(claims.get(self._role_claim)), _time(claims, "exp"))

    def claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a token.

        Raise `AuthenticationError` when the signature is wrong, the token has expired, or its time has not come.
        """
        if not token.strip():
            raise AuthenticationError("Blank token found", NO_TOKEN)
        if self._unnamed is not None and not self._by_kid:
            claims = self._claims_by(self._unnamed, token)
        else:
            claims = self._claims_by_kid(token)
        expires = _time(claims, "exp")
        begins = _time(claims, "nbf")
        now = self._now_ms()
        if expires is not None and now - self._skew_ms > expires:
            raise AuthenticationError(f"{FAILED}: JWT expired")
        if begins is not None and now + self._skew_ms < begins:
            raise AuthenticationError(f"{FAILED}: JWT before its time")
        return claims

    def _claims_by_kid(self, token: str) -> dict[str, Any]:
        """Return the claims of a token that the key of its kid verifies, or any key where kids are not required."""
        if "." not in token[:LONGEST_HEADER]:
            raise AuthenticationError(f"{FAILED}: no header within {LONGEST_HEADER} characters")
        try:
            header = self._jwt.get_unverified_header(token)
        except self._faults as error:
            raise AuthenticationError(f"{FAILED}: {type(error).__name__}") from None
        kid = header.get("kid")
        if kid in self._by_kid:
            return self._claims_by(self._by_kid[kid], token)
        if self._requires_kid:
            raise AuthenticationError(f"{FAILED}: no key has its kid", UNKNOWN_KID)
        unnamed = () if self._unnamed is None else (self._unnamed,)
        for key in (*unnamed, *self._by_kid.values()):
            if header.get("alg") in key.algorithms:
                with suppress(AuthenticationError):
                    return self._claims_by(key, token)
        raise AuthenticationError(f"{FAILED}: no key verifies the token", INVALID if kid is None else UNKNOWN_KID)

    def _claims_by(self, key: TokenKey, token: str) -> dict[str, Any]:
        try:
            claims: dict[str, Any] = self._jwt.decode(
                token, key.key, algorithms=list(key.algorithms), options=NOTHING_BUT_THE_SIGNATURE
            )
        except self._faults as error:
            # The library's own words may quote the token.
            raise AuthenticationError(f"{FAILED}: {type(error).__name__}") from None
        return claims

    def _check_audience(self, claims: dict[str, Any]) -> None:
        if not self._audience_claim:
            return
        found = claims.get(self._audience_claim)
        if self._audience not in (found if isinstance(found, list) else [found]):
            raise AuthenticationError(f"Audiences in token do not contain this broker: {self._audience}", AUDIENCE)


def _token_of(request: HttpCredentials) -> str:
    header = request.authorization
    if not header and "token" in request.query:
        header = BEARER + request.query["token"].removeprefix(BEARER)
    if not header.startswith(BEARER):
        raise AuthenticationError("Invalid HTTP Authorization header", NO_TOKEN)
    return header.removeprefix(BEARER)


def _time(claims: dict[str, Any], name: str) -> int | None:
    """Return a claim that is in seconds, in milliseconds. Raise `AuthenticationError` when it is no number."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**53:
        raise AuthenticationError(f"{FAILED}: {name} is not a time")
    return int(value * 1000)


def _role(claim: Any) -> str | None:
    """Return the first of several roles, as Pulsar does. Return None when the first is not a string."""
    if isinstance(claim, list):
        return claim[0] if claim and isinstance(claim[0], str) else None
    if claim is None or isinstance(claim, str):
        return claim
    raise AuthenticationError(f"{FAILED}: the role is not a text")
