"""Authenticate JSON Web Tokens (AuthenticationProviderToken). The claim `sub`, or tokenAuthClaim, is the role."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pulsarium.broker.auth.identity import AuthenticationError, Certificate, HttpCredentials, Identity
from pulsarium.broker.auth.sources import needs_extra, read_source
from pulsarium.broker.config.keys import Config
from pulsarium.broker.config.meaning import ConfigError

if TYPE_CHECKING:
    from jwt.types import Options

BEARER: Final = "Bearer "
LEAST_SECRET: Final = {"HS256": 32, "HS384": 48, "HS512": 64}  # bytes, as JJWT requires
RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
LEAST_RSA: Final = 2048  # bits
EC: Final = {"ES256": 256, "ES384": 384, "ES512": 521}  # bits of the curve
# The broker's own clock judges times. Beside them, Pulsar looks at the signature and the audience only.
NOTHING_BUT_THE_SIGNATURE: Final[Options] = {"verify_signature": True} | {  # type: ignore[assignment]
    f"verify_{claim}": False for claim in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
}


class TokenProvider:
    """The provider of method token. It verifies tokens with one key."""

    method = "token"

    def __init__(self, config: Config, now_ms: Callable[[], int]) -> None:
        with needs_extra("AuthenticationProviderToken"):
            import jwt
        self._jwt = jwt
        self._now_ms = now_ms
        self._skew_ms = 1000 * config.tokenAllowedClockSkewSeconds
        self._role_claim = config.tokenAuthClaim
        self._audience_claim = config.tokenAudienceClaim
        self._audience = config.tokenAudience
        if self._audience_claim and not self._audience:
            raise ConfigError(
                "", "tokenAudience", "is not set, and tokenAudienceClaim needs it: give this broker's name in tokens"
            )
        self._key: Any
        self._algorithms: list[str]
        if config.tokenSecretKey:
            self._key = read_source("tokenSecretKey", config.tokenSecretKey)
            self._algorithms = [name for name, least in LEAST_SECRET.items() if len(self._key) >= least]
            if not self._algorithms:
                reason = f"is a key of {len(self._key)} bytes; HS256 needs at least 32"
                raise ConfigError("", "tokenSecretKey", reason)
        elif config.tokenPublicKey:
            self._key, self._algorithms = _public_key(config.tokenPublicKey, config.tokenPublicAlg)
        else:
            reason = "is not set, and AuthenticationProviderToken needs it, or tokenPublicKey"
            raise ConfigError("", "tokenSecretKey", reason)

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Identity:
        return self._verify(data.decode("utf-8", "replace"))

    def authenticate_http(self, request: HttpCredentials) -> Identity:
        """Return the identity of the token in `Authorization: Bearer`.

        Without that header, take ?token= (for browsers).
        """
        header = request.authorization
        if not header and "token" in request.query:
            header = BEARER + request.query["token"].removeprefix(BEARER)
        if not header.startswith(BEARER):
            raise AuthenticationError("Invalid HTTP Authorization header")
        return self._verify(header.removeprefix(BEARER))

    def _verify(self, token: str) -> Identity:
        claims = self.claims(token)
        self._check_audience(claims)
        return Identity(_role(claims.get(self._role_claim)), _time(claims, "exp"))

    def claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a token.

        Raise `AuthenticationError` when the signature is wrong, the token has expired, or its time has not come.
        """
        if not token.strip():
            raise AuthenticationError("Blank token found")
        try:
            claims: dict[str, Any] = self._jwt.decode(
                token, self._key, algorithms=self._algorithms, options=NOTHING_BUT_THE_SIGNATURE
            )
        except (self._jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            # The library's own words may quote the token.
            raise AuthenticationError(f"Failed to authentication token: {type(error).__name__}") from None
        expires = _time(claims, "exp")
        begins = _time(claims, "nbf")
        now = self._now_ms()
        if expires is not None and now - self._skew_ms > expires:
            raise AuthenticationError("Failed to authentication token: JWT expired")
        if begins is not None and now + self._skew_ms < begins:
            raise AuthenticationError("Failed to authentication token: JWT before its time")
        return claims

    def _check_audience(self, claims: dict[str, Any]) -> None:
        if not self._audience_claim:
            return
        found = claims.get(self._audience_claim)
        if self._audience not in (found if isinstance(found, list) else [found]):
            raise AuthenticationError(f"Audiences in token do not contain this broker: {self._audience}")


def _public_key(value: str, algorithm: str) -> tuple[Any, list[str]]:
    """Return the key, and the algorithms whose signatures it verifies."""
    with needs_extra("tokenPublicKey"):
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
        from cryptography.hazmat.primitives.serialization import load_der_public_key
    content = read_source("tokenPublicKey", value)
    try:
        key = load_der_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        reason = "is not a public key in DER (X.509 SubjectPublicKeyInfo; openssl writes it with -outform DER)"
        raise ConfigError("", "tokenPublicKey", reason) from None
    if isinstance(key, RSAPublicKey) and algorithm in RSA:
        if key.key_size < LEAST_RSA:
            raise ConfigError("", "tokenPublicKey", f"has {key.key_size} bits; at least {LEAST_RSA} are needed")
        return key, list(RSA)
    if isinstance(key, EllipticCurvePublicKey) and algorithm in EC:
        return key, [name for name, bits in EC.items() if bits == key.curve.key_size]
    raise ConfigError("", "tokenPublicAlg", f"{algorithm} does not fit the kind of key in tokenPublicKey")


def _time(claims: dict[str, Any], name: str) -> int | None:
    """Return a claim that is in seconds, in milliseconds. Raise `AuthenticationError` when it is no number."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**53:
        raise AuthenticationError(f"Failed to authentication token: {name} is not a time")
    return int(value * 1000)


def _role(claim: Any) -> str | None:
    """Return the first of several roles, as Pulsar does. Return None when the first is not a string."""
    if isinstance(claim, list):
        return claim[0] if claim and isinstance(claim[0], str) else None
    if claim is None or isinstance(claim, str):
        return claim
    raise AuthenticationError("Failed to authentication token: the role is not a text")
